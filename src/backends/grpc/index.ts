import type {
  DescMethodBiDiStreaming,
  DescMethodClientStreaming,
  DescMethodServerStreaming,
  DescMethodUnary,
} from "@bufbuild/protobuf";
import type { Logger } from "pino";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import type { NoteDecision } from "../../namespace/decisions.ts";
import type { Backend, LanceNamespace } from "../../namespace/lance-namespace.ts";
import { createResilience } from "../resilience/create-resilience.ts";
import type { ResolveHost } from "../resilience/host-addresses.ts";
import type { ResiliencePolicy } from "../resilience/options.ts";
import type { UpstreamCacheLimits } from "../upstream-cache/cache.ts";
import { createUpstreamCache } from "../upstream-cache/create-cache.ts";
import { createIdentity } from "../upstream-identity/create-identity.ts";
import { createHeaderPolicy } from "../upstream-identity/headers.ts";
import type { UpstreamIdentity, UpstreamIdentityOptions } from "../upstream-identity/identity.ts";
import type { UpstreamTls } from "../upstream-identity/tls.ts";
import { downloadHandler, type Upstream, unaryHandler, uploadHandler } from "./calls.ts";
import { isServing } from "./health.ts";
import type { TimeLimits } from "./patience.ts";
import { createServers } from "./servers.ts";

/** Options of {@link createGrpcBackend}. */
export interface GrpcBackendOptions {
  /**
   * Where the upstream listens, as gRPC has it: `host:port`, `dns:///host:port`, `unix:path`. Calls go to several
   * in turn, as they do to all servers that a name has.
   */
  readonly addresses: readonly string[];
  /** Encrypts the connections. Default: they are not encrypted. */
  readonly tls?: UpstreamTls | undefined;
  /** Headers of every call to the upstream. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /**
   * Headers of clients that are passed on, in lower case; a `*` at the end stands for any ending.
   * Default: {@link DEFAULT_PASSED_HEADERS}.
   */
  readonly passHeaders?: readonly string[] | undefined;
  /** Headers in the context of answers that clients get, in the same form. Default: {@link DEFAULT_RETURNED_HEADERS}. */
  readonly returnHeaders?: readonly string[] | undefined;
  /** Credentials of the calls, or what provides them. Default: passthrough. */
  readonly identity?: UpstreamIdentityOptions | UpstreamIdentity | undefined;
  /** How long a connection may take, in milliseconds. Default: 5 s. */
  readonly connectMs?: number | undefined;
  /** How the upstream's time is bounded, in milliseconds. Default: 120 s for a first byte, 60 s between messages. */
  readonly timeLimits?: Partial<TimeLimits> | undefined;
  /** Keeps answers that describe. Default: every call goes to the upstream. */
  readonly cache?: UpstreamCacheLimits | undefined;
  /** The most calls under way at one address. Default: 1,000. */
  readonly maxCalls?: number | undefined;
  /** The most calls that wait for one address; more are Throttling at once. Default: 1,000. */
  readonly maxWaiting?: number | undefined;
  /** Retries, circuits and hedging. */
  readonly resilience?: ResiliencePolicy | undefined;
  /** Finds all addresses of a host. Default: the system. */
  readonly resolveHost?: ResolveHost | undefined;
  /** Counts decisions that are no call's own. Default: nobody does. */
  readonly noteDecision?: NoteDecision | undefined;
  /**
   * How long a call with a single answer may take with all its attempts, in milliseconds. Default: as long as its
   * client waits.
   */
  readonly timeoutMs?: number | undefined;
  /** How long a connection is quiet before it is probed, in milliseconds. Default: 30 s. */
  readonly keepAliveMs?: number | undefined;
  /** The largest message that the upstream may answer with, in bytes. Default: 64 MiB. */
  readonly maxMessageBytes?: number | undefined;
  readonly log: Logger;
}

const MIB = 1024 * 1024;

/**
 * Creates the backend that hands every operation to an upstream by gRPC. It connects with the first call.
 *
 * @throws Error with one clear line for options that cannot be used.
 */
export async function createGrpcBackend(options: GrpcBackendOptions): Promise<Backend> {
  const {
    addresses,
    tls,
    log,
    connectMs = 5_000,
    keepAliveMs = 30_000,
    maxMessageBytes = 64 * MIB,
    maxCalls: places = 1_000,
    maxWaiting = 1_000,
  } = options;
  const { resolveHost, timeoutMs, noteDecision, identity } = options;
  if (identity !== undefined && "kind" in identity && identity.kind === "sigv4") {
    throw new Error("the upstream identity sigv4 is for REST upstreams");
  }
  const limits = { places, maxWaiting };
  const servers = createServers({
    addresses,
    tls,
    connectMs,
    keepAliveMs,
    maxMessageBytes,
    limits,
    resolveHost,
  });
  const resilience = createResilience(servers.endpoints, {
    ...options.resilience,
    log,
    noteDecision,
    totalMs: timeoutMs,
  });
  servers.watch((endpoints) => resilience.replace(endpoints));
  const upstream: Upstream = {
    resilience,
    timeoutMs,
    limits: { firstByteMs: 120_000, idleMs: 60_000, ...options.timeLimits },
    policy: createHeaderPolicy(options),
    identity: await createIdentity(identity),
  };
  const handlers = LanceNamespaceService.methods.map((method) => [
    method.localName,
    handlerOf(method, upstream),
  ]);
  const cached = createUpstreamCache(options.cache, { ...upstream, noteDecision });
  return {
    name: "grpc",
    operations: cached(LanceNamespaceService.methods, Object.fromEntries(handlers)) as LanceNamespace,
    ready: () => isServing(servers.endpoints, log),
    close: () => servers.close(),
  };
}

type AnyMethod =
  | DescMethodUnary
  | DescMethodClientStreaming
  | DescMethodServerStreaming
  | DescMethodBiDiStreaming;

function handlerOf(method: AnyMethod, upstream: Upstream): unknown {
  switch (method.methodKind) {
    case "unary":
      return unaryHandler(method, upstream);
    case "client_streaming":
      return uploadHandler(method, upstream);
    case "server_streaming":
      return downloadHandler(method, upstream);
    default:
      throw new Error(`${method} streams both ways, which no operation does`);
  }
}
