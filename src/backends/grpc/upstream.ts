import type { DescMethod } from "@bufbuild/protobuf";
import { type CallOptions, type Client, Metadata } from "@grpc/grpc-js";
import type { Call } from "../../namespace/call/call.ts";
import { isLanceError, LanceError } from "../../namespace/errors.ts";
import type { Ending } from "../../runtime/late-signal.ts";
import { currentTraceParent } from "../../runtime/tracing.ts";
import type { Resilience } from "../resilience/resilience.ts";
import type { HeaderPolicy } from "../upstream-identity/headers.ts";
import {
  toldToClient,
  type UpstreamCredentials,
  type UpstreamIdentity,
} from "../upstream-identity/identity.ts";
import { type Channel, definitionOf, knownFieldsWriter } from "./channel/channels.ts";
import type { TimeLimits } from "./channel/patience.ts";

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

/** Returns the function that finds the encoder of a call's requests: what nobody knows passes only where nothing decides about callers. */
export function createWriterOf(method: DescMethod) {
  const { requestSerialize } = definitionOf(method);
  const writeKnown = knownFieldsWriter(method);
  return ({ principal }: Call) => (principal === undefined ? requestSerialize : writeKnown);
}

/** Takes a slot among the calls of a connected channel; without a promise if nothing has to be waited for. */
export function enter(
  channel: Channel,
  signal: Ending,
  call: Call,
  endsAt?: number,
): Client | Promise<Client> {
  const enterGate = (client: Client) => {
    const limitMs = endsAt === undefined ? 0 : Math.max(1, endsAt - Date.now());
    const entering = channel.gate.enter(signal, limitMs, call);
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
export function authorized<T>(
  upstream: Upstream,
  pairs: readonly string[],
  call: Call,
  make: (metadata: Metadata) => Promise<T>,
): Promise<T> {
  const found = upstream.identity.credentials(call);
  const makeWith = (credentials: UpstreamCredentials) =>
    make(metadataOf(upstream, pairs, credentials)).catch((error: unknown) =>
      again({ upstream, pairs, call, make }, credentials, error),
    );
  return found instanceof Promise ? found.then(makeWith) : makeWith(found);
}

/** A call that is made with credentials. */
interface Authorized<T> {
  readonly upstream: Upstream;
  readonly pairs: readonly string[];
  readonly call: Call;
  readonly make: (metadata: Metadata) => Promise<T>;
}

/** Retries a call once with other credentials if there are any and the upstream has refused the first. */
async function again<T>(
  { upstream, pairs, call, make }: Authorized<T>,
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

/** Returns the metadata of a call with its credentials. */
export function metadataOf(
  { policy }: Upstream,
  pairs: readonly string[],
  credentials: UpstreamCredentials,
): Metadata {
  if (typeof credentials === "function") throw new Error("signatures of requests are for REST upstreams");
  const all = [...pairs];
  policy.addCredentials(all, credentials);
  return toMetadata(all);
}

/** Returns the deadline of a client as an option of the library. */
export function deadlineOf(deadline: number | undefined): CallOptions {
  return deadline === undefined ? {} : { deadline };
}

const NAME = /^[0-9a-z_.-]+$/;
const VALUE = /^[ -~]*$/;

/**
 * Converts names and values in turn to metadata; a name that ends in `-bin` has base64 as a header and bytes here.
 *
 * @throws LanceError InvalidInput for values that HTTP allows and gRPC does not. It omits the value, which may be a
 *   credential.
 */
export function toMetadata(pairs: readonly string[]): Metadata {
  const metadata = new Metadata();
  for (let at = 0; at + 1 < pairs.length; at += 2) {
    const [name, value] = [pairs[at] as string, pairs[at + 1] as string];
    if (!NAME.test(name))
      throw new LanceError("InvalidInput", `header ${name} cannot be sent as gRPC metadata`);
    if (name.endsWith("-bin")) metadata.set(name, Buffer.from(value, "base64"));
    else if (VALUE.test(value)) metadata.set(name, value);
    else
      throw new LanceError(
        "InvalidInput",
        `header ${name} has a character that metadata of gRPC cannot have`,
      );
  }
  return metadata;
}

/** Returns metadata whose `traceparent` continues the current span; the given one if there is none. */
export function inTrace(metadata: Metadata): Metadata {
  const own = currentTraceParent();
  if (own === undefined) return metadata;
  const continued = metadata.clone();
  continued.set("traceparent", own);
  return continued;
}
