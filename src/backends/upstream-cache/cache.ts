import { createHash, randomBytes } from "node:crypto";
import { type DescMethod, fromBinary, type Message, toBinary } from "@bufbuild/protobuf";
import { type Call, copyCall, type Validation } from "../../namespace/call/call.ts";
import { createClearing } from "../../namespace/call/clearing.ts";
import { type Flight, startFlight } from "../../namespace/call/flight.ts";
import { demandsFreshness } from "../../namespace/call/headers.ts";
import type { NoteDecision } from "../../namespace/figures.ts";
import { isRead } from "../../namespace/operations/method-facts.ts";
import { factsOf } from "../../namespace/operations/operations.ts";
import type { SharedCounter } from "../../runtime/threads/sharing.ts";
import type { HeaderPolicy } from "../upstream-identity/headers.ts";
import type { SignRequest, UpstreamCredentials, UpstreamIdentity } from "../upstream-identity/identity.ts";
import { createSlots, lastingHeaders, lifetimeOf, packAnswer, shareClears } from "./slots.ts";

/** Bounds of a cache. */
export interface UpstreamCacheLimits {
  /** How long an answer is used without revalidation, in milliseconds. */
  readonly ttlMs: number;
  /** Maximum number of answers. Default: 10,000. */
  readonly maxEntries?: number | undefined;
  /** Maximum memory of answers, in bytes. Default: 64 MiB. */
  readonly maxBytes?: number | undefined;
  /** Number of calls of all workers that wrote; their answers are forgotten by each worker. Default: there is one. */
  readonly writes?: SharedCounter | undefined;
}

/** Options of {@link createDescribeCache}. */
export interface DescribeCacheOptions extends UpstreamCacheLimits {
  /**
   * Returns everything that identifies the caller to the upstream and that its answer may depend on: names and values
   * in turn.
   */
  readonly principalOf: (call: Call, request: Message) => readonly string[] | Promise<readonly string[]>;
  /** Counts decisions for calls that have ended. Default: they are not counted. */
  readonly noteDecision?: NoteDecision | undefined;
  /** Returns the time in milliseconds, from any origin. Default: that of the process. */
  readonly now?: () => number;
}

/** Puts the cache in front of handlers, which it finds by the names of their methods. */
export type DescribeCache = (
  methods: readonly DescMethod[],
  handlers: Readonly<Record<string, unknown>>,
) => Record<string, unknown>;

type UnaryHandler = (request: Message, call: Call) => Promise<Message>;

/** A cached answer. */
interface Kept {
  readonly packed: Uint8Array;
  /** Its memory, in bytes. */
  readonly bytes: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly etag: string | undefined;
  readonly freshUntil: number;
  readonly usableUntil: number;
}

/** Result of a flight. */
interface Landed {
  /** The answer for the call that requested it. */
  readonly message: Message;
  /** Its headers, including those of the exchange. */
  readonly responseHeaders: Readonly<Record<string, string>>;
  /** The answer for all other callers. */
  readonly kept: Kept;
}

const ANSWER_ANEW = /\bno-(?:cache|store)\b/i;

/**
 * Creates the cache of an upstream, for answers that describe tables and namespaces, or say that they exist.
 *
 * An answer is used only for an equal request of the same principal. A call that writes evicts what it may touch,
 * before it goes to the upstream and after it has ended in any way; answers in flight meanwhile are not cached. A
 * client's `cache-control: no-cache` bypasses the cache, and so does its demand of how new the answer has to be.
 */
export function createDescribeCache(options: DescribeCacheOptions): DescribeCache {
  const { ttlMs, principalOf, maxEntries = 10_000, maxBytes = 64 * 1024 * 1024 } = options;
  const { now = () => performance.now(), noteDecision = () => {} } = options;
  const slots = shareClears(createSlots<Kept | Flight<Landed>>({ maxEntries, maxBytes }), options.writes);
  const keyOf = createKeyOf();

  function cached(method: DescMethod, handler: UnaryHandler): UnaryHandler {
    /** Asks the upstream, and revalidates a cached answer. */
    async function ask(request: Message, call: Call, old: Kept | undefined): Promise<Landed> {
      const asked = now();
      const validation: Validation = { known: old?.etag };
      const answer = await handler(request, copyCall(call, { validation }));
      const held = validation.holds ? old : undefined;
      call.note(held === undefined ? "cache_miss" : "cache_revalidated");
      const message = held === undefined ? answer : unpacked(held);
      const packed = held?.packed ?? packAnswer(method.output, message);
      const { freshMs, usableMs } = lifetimeOf(message, ttlMs, validation.cacheControl);
      const kept: Kept = {
        packed,
        bytes: packed.byteLength,
        headers: { ...held?.headers, ...lastingHeaders(call.responseHeaders) },
        etag: validation.etag ?? held?.etag,
        freshUntil: asked + freshMs,
        usableUntil: asked + usableMs,
      };
      return { message, responseHeaders: call.responseHeaders, kept };
    }

    function begin(key: string, request: Message, call: Call, old: Kept | undefined): Flight<Landed> {
      const fetch = async (own: Call): Promise<Landed> => {
        try {
          const landed = await ask(request, own, old);
          if (slots.has(key, flight)) keep(key, call, landed.kept);
          return landed;
        } catch (thrown) {
          leave();
          throw thrown;
        }
      };
      const leave = () => {
        if (slots.has(key, flight)) slots.delete(key);
      };
      const flight = startFlight(call, fetch, { onAbandoned: leave, noteDecision });
      slots.put(key, call.id, flight);
      return flight;
    }

    function unpacked({ packed }: Kept): Message {
      return fromBinary(method.output, packed);
    }

    function reused(kept: Kept, call: Call): Message {
      call.note("cache_hit");
      Object.assign(call.responseHeaders, kept.headers);
      return unpacked(kept);
    }

    return async (request, call) => {
      const principal = principalOf(call, request);
      const key = keyOf(method, request, call, principal instanceof Promise ? await principal : principal);
      call.signal.throwIfAborted();
      const found = isAnsweredAnew(call) ? undefined : slots.get(key);
      const kept = found !== undefined && "packed" in found ? found : undefined;
      if (kept !== undefined && now() < kept.freshUntil) return reused(kept, call);
      if (found !== undefined && "wait" in found && found.lasts(call)) {
        const landed = await found.wait(call);
        return reused(landed.kept, call);
      }
      const old = isRevalidable(kept, call) ? kept : undefined;
      const { message, responseHeaders } = await begin(key, request, call, old).wait(call);
      Object.assign(call.responseHeaders, responseHeaders);
      return message;
    };
  }

  /** The age of a cached answer does not tell how old the state was that the upstream read. */
  function isAnsweredAnew({ headers }: Call): boolean {
    return ANSWER_ANEW.test(headers["cache-control"] ?? "") || demandsFreshness(headers);
  }

  /** A condition of the client's own would make it unclear which answer is valid. */
  function isRevalidable(kept: Kept | undefined, { headers }: Call): boolean {
    return kept?.etag !== undefined && now() < kept.usableUntil && headers["if-none-match"] === undefined;
  }

  function keep(key: string, call: Call, kept: Kept): void {
    const time = now();
    const useful = time < kept.freshUntil || (kept.etag !== undefined && time < kept.usableUntil);
    if (useful) slots.put(key, call.id, kept);
    else slots.delete(key);
  }

  const clearing = createClearing((id) => slots.clear(id));

  return (methods, handlers) => {
    const result = { ...handlers };
    for (const method of methods) {
      const handler = handlers[method.localName];
      if (handler === undefined) continue;
      if (factsOf(method.localName)?.cacheable)
        result[method.localName] = cached(method, handler as UnaryHandler);
      else if (!isRead(method)) result[method.localName] = clearing(method, handler);
    }
    return result;
  };
}

/**
 * Properties of an upstream that a cache needs: the headers that identify callers, and the counter of its decisions.
 */
interface CachedUpstream {
  readonly policy: HeaderPolicy;
  readonly identity: UpstreamIdentity;
  readonly noteDecision?: NoteDecision | undefined;
}

/** Creates the cache in front of an upstream, or a function that returns handlers unchanged. */
export function createUpstreamCache(
  limits: UpstreamCacheLimits | undefined,
  { policy, identity, noteDecision }: CachedUpstream,
): DescribeCache {
  if (limits === undefined || limits.ttlMs === 0) return (_, handlers) => ({ ...handlers });
  return createDescribeCache({
    ...limits,
    noteDecision,
    principalOf(call) {
      const pairs = policy.varying(call);
      const withCredentials = (credentials: UpstreamCredentials) => {
        if (typeof credentials === "function") pairs.push("signer", signerId(credentials));
        else policy.addCredentials(pairs, credentials);
        return pairs;
      };
      const found = identity.credentials(call);
      return found instanceof Promise ? found.then(withCredentials) : withCredentials(found);
    },
  });
}

const signers = new WeakMap<SignRequest, string>();
let lastSigner = 0;

/** Signatures differ in every request, so the signer identifies a caller. */
function signerId(sign: SignRequest): string {
  const known = signers.get(sign);
  if (known !== undefined) return known;
  lastSigner += 1;
  signers.set(sign, String(lastSigner));
  return String(lastSigner);
}

/** Returns the key of an answer, from the principal and the request. */
type KeyOf = (method: DescMethod, request: Message, call: Call, principal: readonly string[]) => string;

interface Asking extends Message {
  context?: Record<string, string>;
  identity?: unknown;
}

/**
 * Creates the keys of a cache. They are hashes with a secret of this process, so that the memory of the cache reveals
 * no credential, and allows no guess to be verified.
 */
function createKeyOf(): KeyOf {
  const secret = randomBytes(32);
  return (method, request, call, principal) =>
    createHash("sha256")
      .update(secret)
      .update(JSON.stringify([method.localName, call.id, principal]))
      .update(toBinary(method.input, essential(request)))
      .digest("base64");
}

/** Returns a request without the parts that the call has resolved: its object, headers and credentials. */
function essential(request: Asking): Message {
  const context = Object.entries(request.context ?? {})
    .filter(([key]) => !key.startsWith("header."))
    .sort(([a], [b]) => (a < b ? -1 : 1));
  const { identity: _, ...rest } = request;
  return { ...rest, id: [], identifier: "", context: Object.fromEntries(context) } as Message;
}
