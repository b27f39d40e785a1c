import type {
  DescMethod,
  DescMethodClientStreaming,
  DescMethodServerStreaming,
  DescMethodUnary,
  Message,
} from "@bufbuild/protobuf";
import type { CallOptions, Client, ClientReadableStream, Metadata } from "@grpc/grpc-js";
import { bodyFieldOf } from "../../namespace/body-field.ts";
import type { Call } from "../../namespace/call.ts";
import { isLanceError } from "../../namespace/errors.ts";
import { mayPass } from "../../namespace/passed-answer.ts";
import type { Ending } from "../../runtime/late-signal.ts";
import type { Resilience } from "../resilience/resilience.ts";
import { repeatableOf } from "../resilience/resilience.ts";
import type { HeaderPolicy } from "../upstream-identity/headers.ts";
import type { UpstreamCredentials, UpstreamIdentity } from "../upstream-identity/identity.ts";
import { toldToClient } from "../upstream-identity/refusal.ts";
import { answerOf } from "./answer.ts";
import type { Channel } from "./channels.ts";
import { unreached, upstreamError } from "./errors.ts";
import { inTrace, toMetadata } from "./metadata.ts";
import { definitionOf, knownFieldsWriter } from "./method-definition.ts";
import { Patience, type TimeLimits } from "./patience.ts";
import { createPassingReader } from "./plain-message.ts";
import { send, uploadMessages } from "./upload-messages.ts";

/** Context that the calls of a backend share. */
export interface Upstream {
  /** Chooses the address for each call, and retries the call. */
  readonly resilience: Pick<Resilience<Channel>, "run">;
  readonly policy: HeaderPolicy;
  readonly identity: UpstreamIdentity;
  /** Longest duration of a call with a single answer, including all its attempts, in milliseconds. */
  readonly timeoutMs: number | undefined;
  readonly limits: TimeLimits;
}

/** Returns the function of a method with a single request and a single response. */
export function unaryHandler(method: DescMethodUnary, upstream: Upstream) {
  const { path, responseDeserialize } = definitionOf(method);
  const writerOf = createWriterOf(method);
  const { resilience, policy, limits } = upstream;
  const passOrRead = createPassingReader(method);
  return async (request: Message, call: Call): Promise<Message> => {
    const pairs = policy.sent(call, request);
    const repeatable = repeatableOf(method, pairs);
    const write = writerOf(call);
    const read = mayPass(call, "binary") ? passOrRead : responseDeserialize;
    const answer = await authorized(upstream, pairs, call, (metadata) =>
      resilience.run(call, repeatable, (channel, signal, { elapsedMs, onSent }) => {
        const endsAt = endOf(upstream, elapsedMs);
        const onEnd = () => channel.gate.leave();
        const make = () =>
          answerOf({ call, signal, endsAt, onEnd }, (answer) => {
            answer.patience.awaitFirst(limits.firstByteMs);
            onSent();
            const deadline = earliest(call.deadline, endsAt);
            const started = { path, request, metadata: inTrace(metadata), deadline, write, read };
            return channel.unary(started, answer);
          });
        const entered = enter(channel, signal, endsAt);
        return entered instanceof Promise ? entered.then(make) : make();
      }),
    );
    policy.filterContext(answer, call);
    return answer;
  };
}

/** Returns the function of a method that takes a body; it reads no more of the body than the upstream takes. */
export function uploadHandler(method: DescMethodClientStreaming, upstream: Upstream) {
  const { path, responseDeserialize } = definitionOf(method);
  const writerOf = createWriterOf(method);
  const { resilience, policy, identity, limits } = upstream;
  const field = bodyFieldOf(method.input) as string;
  return async (request: Message, data: AsyncIterable<Uint8Array>, call: Call): Promise<Message> => {
    const pairs = policy.sent(call, request);
    const metadata = metadataOf(upstream, pairs, await identity.credentials(call));
    let failure: unknown;
    const answer = await resilience.run(call, repeatableOf(method, pairs), async (channel, signal) => {
      const client = await enter(channel, signal);
      const onEnd = () => channel.gate.leave();
      try {
        return await answerOf({ call, signal, bodySent: true, onEnd }, (pending) => {
          const stream = client.makeClientStreamRequest(
            path,
            writerOf(call),
            responseDeserialize,
            inTrace(metadata),
            // The sender of a body decides how long it takes.
            deadlineOf(call.deadline),
            (error, answer) => (error === null ? pending.done(answer as Message) : pending.fail(error)),
          );
          stream.once("metadata", () => {
            pending.begun = true;
          });
          const observer = {
            onWaiting: () => pending.patience.awaitFirst(limits.firstByteMs),
            onTaken: () => pending.patience.rest(),
          };
          send(stream, uploadMessages(method, field, request, data, call), observer).catch((thrown) => {
            failure = thrown;
            stream.cancel();
          });
          return stream;
        });
      } catch (thrown) {
        throw toldToClient(failure ?? thrown, identity);
      }
    });
    policy.filterContext(answer, call);
    return answer;
  };
}

/** Returns the function of a method that answers with a body; the upstream sends no more of it than is read. */
export function downloadHandler(method: DescMethodServerStreaming, upstream: Upstream) {
  const { path, responseDeserialize } = definitionOf(method);
  const writerOf = createWriterOf(method);
  const { resilience, policy, limits } = upstream;

  function open(client: Client, request: Message, metadata: Metadata, call: Call) {
    const [write, options] = [writerOf(call), deadlineOf(call.deadline)];
    try {
      return client.makeServerStreamRequest(path, write, responseDeserialize, request, metadata, options);
    } catch (thrown) {
      // The channel was closed while the call waited for its turn, because its server is gone.
      throw unreached(thrown);
    }
  }

  return async function* (request: Message, call: Call): AsyncIterable<Message> {
    let stream: ClientReadableStream<Message> | undefined;
    const cancel = () => stream?.cancel();
    const patience = new Patience(cancel);
    let held: Channel | undefined;
    const leave = () => {
      held?.gate.leave();
      held = undefined;
    };
    let begun = false;
    call.signal.throwIfAborted();
    call.signal.addEventListener("abort", cancel);
    try {
      const pairs = policy.sent(call, request);
      const repeatable = repeatableOf(method, pairs);
      const [first, messages] = await authorized(upstream, pairs, call, (metadata) =>
        resilience.run(call, repeatable, async (channel, _, { onSent }) => {
          const client = await enter(channel, call.signal);
          held = channel;
          call.signal.throwIfAborted();
          let headed = false;
          try {
            stream = open(client, request, inTrace(metadata), call);
            limitReadAhead(stream);
            onSent();
            stream.once("metadata", () => {
              headed = true;
            });
            const messages: AsyncIterator<Message> = stream[Symbol.asyncIterator]();
            patience.awaitFirst(limits.firstByteMs);
            // The first message proves that the upstream has accepted the call.
            return [await messages.next(), messages] as const;
          } catch (thrown) {
            leave();
            throw patience.reason ?? upstreamError(thrown, call, { headed });
          } finally {
            patience.rest();
          }
        }),
      );
      if (first.done) return;
      begun = true;
      policy.filterContext(first.value, call);
      yield first.value;
      for (;;) {
        patience.awaitNext(limits.idleMs);
        const { done, value } = await messages.next();
        patience.rest();
        if (done) return;
        policy.filterContext(value, call);
        yield value;
      }
    } catch (thrown) {
      throw patience.reason ?? upstreamError(thrown, call, { begun });
    } finally {
      patience.rest();
      call.signal.removeEventListener("abort", cancel);
      // A reader that leaves early does not need the rest.
      cancel();
      leave();
    }
  };
}

/** The part of node's readable streams that decides how much is read ahead. */
type ReadAheadState = { readonly _readableState: { highWaterMark: number } };

/** Number of messages that are read ahead of the reader of an answer: the next one is there when the reader asks for it. */
const MESSAGES_AHEAD = 2;

/** Keeps an answer from being read far ahead: the library reads 16 messages of any size, and has no option for it. */
function limitReadAhead(stream: ClientReadableStream<Message>): void {
  const { _readableState: state } = stream as Partial<ClientReadableStream<Message>> as ReadAheadState;
  state.highWaterMark = MESSAGES_AHEAD;
}

/** Returns the function that finds the encoder of a call's requests: what nobody knows passes only where nothing decides about callers. */
function createWriterOf(method: DescMethod) {
  const { requestSerialize } = definitionOf(method);
  const writeKnown = knownFieldsWriter(method);
  return ({ principal }: Call) => (principal === undefined ? requestSerialize : writeKnown);
}

/** Takes a slot among the calls of a connected channel; without a promise if nothing has to be waited for. */
function enter(channel: Channel, signal: Ending, endsAt?: number): Client | Promise<Client> {
  const enterGate = (client: Client) => {
    const limitMs = endsAt === undefined ? 0 : Math.max(1, endsAt - Date.now());
    const entering = channel.gate.enter(signal, limitMs);
    return entering === undefined ? client : entering.then(() => client);
  };
  try {
    const client = channel.connected();
    return client instanceof Promise ? client.then(enterGate) : enterGate(client);
  } catch (error) {
    return Promise.reject(error);
  }
}

/** Makes a call with credentials; without a promise of its own if nothing has to be fetched for them. */
function authorized<T>(
  upstream: Upstream,
  pairs: readonly string[],
  call: Call,
  make: (metadata: Metadata) => Promise<T>,
): Promise<T> {
  const found = upstream.identity.credentials(call);
  const makeWith = (credentials: UpstreamCredentials) =>
    make(metadataOf(upstream, pairs, credentials)).catch((error: unknown) =>
      again(upstream, pairs, call, make, credentials, error),
    );
  return found instanceof Promise ? found.then(makeWith) : makeWith(found);
}

/** Retries a call once with other credentials if there are any and the upstream has refused the first. */
async function again<T>(
  upstream: Upstream,
  pairs: readonly string[],
  call: Call,
  make: (metadata: Metadata) => Promise<T>,
  refused: UpstreamCredentials,
  error: unknown,
): Promise<T> {
  const { identity } = upstream;
  if (!isLanceError(error, "Unauthenticated") || !identity.refused(call, refused)) {
    throw toldToClient(error, identity);
  }
  const others = await identity.credentials(call);
  return make(metadataOf(upstream, pairs, others)).catch((failure: unknown) => {
    throw toldToClient(failure, identity);
  });
}

function metadataOf(
  { policy }: Upstream,
  pairs: readonly string[],
  credentials: UpstreamCredentials,
): Metadata {
  if (typeof credentials === "function") throw new Error("signatures of requests are for REST upstreams");
  const all = [...pairs];
  policy.addCredentials(all, credentials);
  return toMetadata(all);
}

/** Returns the end of the gateway's own limit for a call, in epoch milliseconds; undefined without a limit. */
function endOf({ timeoutMs }: Upstream, elapsedMs: number): number | undefined {
  return timeoutMs === undefined ? undefined : Date.now() + timeoutMs - elapsedMs;
}

function earliest(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.min(a, b);
}

function deadlineOf(deadline: number | undefined): CallOptions {
  return deadline === undefined ? {} : { deadline };
}
