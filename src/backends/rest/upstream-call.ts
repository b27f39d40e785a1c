import type { Message } from "@bufbuild/protobuf";
import type { UpstreamForm } from "../../dialects/upstream.ts";
import { type Call, endingOf } from "../../namespace/call/call.ts";
import type { ByteHold } from "../../namespace/memory/byte-budget.ts";
import type { ClientBinding } from "../../transcode/client-binding.ts";
import { type Resilience, repeatableOf } from "../resilience/resilience.ts";
import { type HeaderPolicy, inTrace } from "../upstream-identity/headers.ts";
import {
  toldToClient,
  type UpstreamCredentials,
  type UpstreamIdentity,
} from "../upstream-identity/identity.ts";
import { errorOfAnswer, errorOfFailure } from "./errors.ts";
import type { UpstreamRequest, UpstreamResponse, UpstreamTransport } from "./transport/transport.ts";

/** Options of {@link createUpstreamCaller}. */
export interface UpstreamCallerOptions {
  readonly form: UpstreamForm;
  /** Chooses the address for each request, and retries the request. */
  readonly upstream: Pick<Resilience<UpstreamTransport>, "run">;
  readonly identity: UpstreamIdentity;
  readonly policy: HeaderPolicy;
}

/** A call of the upstream, before it becomes HTTP. */
export interface UpstreamCall {
  readonly binding: ClientBinding;
  readonly request: Message;
  readonly call: Call;
  /** Media type to request. */
  readonly accept: string;
  /** Further headers of the request, names and values in turn. Default: none. */
  readonly headers?: readonly string[];
  /** Holds the bytes of an answer that is collected. Default: they are not counted. */
  readonly hold?: ByteHold | undefined;
  /** A body that passes through unchanged, and its media type. */
  readonly upload?: { readonly data: AsyncIterable<Uint8Array>; readonly contentType: string };
}

/**
 * Sends calls to the upstream and returns the answers of success.
 *
 * @throws LanceError for every other answer, and for a missing one.
 */
export type CallUpstream = (upstreamCall: UpstreamCall) => Promise<UpstreamResponse>;

/** Creates the function that calls an upstream. */
export function createUpstreamCaller({
  form,
  upstream,
  identity,
  policy,
}: UpstreamCallerOptions): CallUpstream {
  const refused = createMethodMemory();

  async function callUpstream(upstreamCall: UpstreamCall): Promise<UpstreamResponse> {
    const { call, request, upload } = upstreamCall;
    const pairs = policy.sent(call, request);
    const found = identity.credentials(call);
    let credentials = found instanceof Promise ? await found : found;
    const [binding, other] = refused.inOrder(upstreamCall.binding);
    let response = await send(upstreamCall, binding, pairs, credentials);
    if (isRefusal(response) && upload === undefined && identity.refused(call, credentials)) {
      credentials = await identity.credentials(call);
      response = await send(upstreamCall, binding, pairs, credentials);
    }
    if (response.status === 405 && other !== undefined) {
      const second = await send(upstreamCall, other, pairs, credentials);
      if (second.status !== 405) refused.remember(upstreamCall.binding, binding);
      return successOf(second, other, call);
    }
    return successOf(response, binding, call);
  }

  function successOf(response: UpstreamResponse, binding: ClientBinding, call: Call): UpstreamResponse {
    if (isSuccess(response.status, call)) return response;
    throw errorOf(response, binding);
  }

  /**
   * Sends a request. Returns an answer of success or 405, or one that refuses the credentials, and throws a
   * LanceError for every other one.
   */
  function send(
    upstreamCall: UpstreamCall,
    binding: ClientBinding,
    pairs: readonly string[],
    credentials: UpstreamCredentials,
  ): Promise<UpstreamResponse> {
    const { call, request, upload, hold } = upstreamCall;
    const target = binding.target(request);
    const body = upload?.data ?? (binding.requestBody === "json" ? binding.body(request) : undefined);
    const streams = binding.responseBody === "raw";
    return upstream.run(call, repeatableOf(binding.method, pairs), async (transport, signal, progress) => {
      const headers = inTrace(pairs);
      addOwn(headers, upstreamCall, binding);
      const method = binding.httpMethod;
      const signed =
        typeof credentials === "function"
          ? await credentials({ method, url: transport.base + target, headers, body })
          : credentials;
      policy.addCredentials(headers, signed);
      const upstreamRequest: UpstreamRequest = {
        method,
        target,
        headers,
        body,
        streams,
        hold,
        call,
        // An interrupted wire may still be sending.
        releasesPieces: () => call.releasesChunks === true && !endingOf(call).aborted,
        signal,
        elapsedMs: progress.elapsedMs,
        // The sender of an upload decides how long it takes.
        onSent: upload === undefined ? progress.onSent : undefined,
      };
      let response: UpstreamResponse;
      try {
        response = await transport.send(upstreamRequest);
      } catch (thrown) {
        throw errorOfFailure(thrown, call);
      }
      const { status } = response;
      if (isSuccess(status, call) || status === 405 || isRefusal(response)) return response;
      throw errorOf(response, binding);
    });
  }

  function errorOf(response: UpstreamResponse, { method, resource, responseBody }: ClientBinding): Error {
    const asksExistence = responseBody === "empty";
    const facts = { forms: form.errors, request: method.input.typeName, resource, asksExistence };
    const error = errorOfAnswer(response, facts);
    return toldToClient(error, identity, isRefusal(response) || error.is("Unauthenticated"));
  }

  function isRefusal(response: UpstreamResponse): boolean {
    return identity.isRefusal?.(response) ?? response.status === 401;
  }

  return callUpstream;
}

function isSuccess(status: number, call: Call): boolean {
  return (status >= 200 && status < 300) || stillHolds(status, call);
}

function addOwn(
  pairs: string[],
  { call, accept, headers = [], upload }: UpstreamCall,
  binding: ClientBinding,
): void {
  // Nothing here unpacks answers, and the user agent must not look like a client's.
  pairs.push("accept-encoding", "identity", "user-agent", "lance-gateway", "accept", accept);
  for (const text of headers) pairs.push(text);
  if (upload !== undefined) pairs.push("content-type", upload.contentType);
  else if (binding.requestBody === "json") pairs.push("content-type", "application/json");
  addCondition(pairs, call);
  if (call.deadline === undefined) return;
  pairs.push("x-request-timeout-ms", String(Math.max(1, Math.ceil(call.deadline - Date.now()))));
}

/**
 * How long a refused HTTP method is avoided, in milliseconds: a 405 may come from a proxy, or from an old replica.
 */
const MEMORY_MS = 60_000;

/** Remembers temporarily which HTTP methods an upstream refuses, for operations that have two. */
interface MethodMemory {
  /** Returns the forms of an operation, with the one to try first in front. */
  inOrder(binding: ClientBinding): readonly [ClientBinding, ClientBinding | undefined];
  /** Records that the upstream refused a form of an operation and accepted the other. */
  remember(binding: ClientBinding, refused: ClientBinding): void;
}

/** Creates an empty memory; it holds at most one entry for each operation. */
function createMethodMemory(): MethodMemory {
  const refusals = new Map<ClientBinding, { readonly refused: ClientBinding; readonly until: number }>();

  return {
    inOrder(binding) {
      const { alternative } = binding;
      const known = refusals.get(binding);
      if (alternative === undefined || known === undefined) return [binding, alternative];
      if (Date.now() >= known.until) {
        refusals.delete(binding);
        return [binding, alternative];
      }
      return known.refused === binding ? [alternative, binding] : [binding, alternative];
    },
    remember(binding, refused) {
      refusals.set(binding, { refused, until: Date.now() + MEMORY_MS });
    },
  };
}

/** Asks the upstream whether the cached answer is still valid. */
function addCondition(pairs: string[], { validation }: Call): void {
  if (validation?.known !== undefined) pairs.push("if-none-match", validation.known);
}

/** Whether an answer confirms that: 304, or 412 if the request is not a GET (RFC 9110, 13.1.2). */
function stillHolds(status: number, { validation }: Call): boolean {
  return validation?.known !== undefined && (status === 304 || status === 412);
}

/** Passes the upstream's answer to the cache; returns whether the cached answer is valid. */
export function tellCache({ status, headers }: UpstreamResponse, call: Call): boolean {
  const { validation } = call;
  if (validation === undefined) return false;
  validation.holds = stillHolds(status, call);
  validation.etag = textOf(headers["etag"]);
  validation.cacheControl = textOf(headers["cache-control"]);
  return validation.holds;
}

function textOf(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(", ") : value;
}
