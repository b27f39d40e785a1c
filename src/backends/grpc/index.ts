import type { Logger } from "pino";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import type { NoteDecision } from "../../namespace/figures.ts";
import type { Backend, LanceNamespace, StorageAccess } from "../../namespace/lance-namespace.ts";
import type { ByteBudget } from "../../namespace/memory/byte-budget.ts";
import type { AnyMethod } from "../../namespace/service.ts";
import type { KeyedCells } from "../../runtime/threads/keyed-cells.ts";
import { createAnswerBudget } from "../resilience/answer-budget.ts";
import { createResilience } from "../resilience/create-resilience.ts";
import type { ResolveHost } from "../resilience/followed-hosts.ts";
import { createOutageLog } from "../resilience/outage-log.ts";
import type { ResiliencePolicy } from "../resilience/resilience.ts";
import { createUpstreamCache, type UpstreamCacheLimits } from "../upstream-cache/cache.ts";
import { createIdentity, keyOfCaller } from "../upstream-identity/create-identity.ts";
import { createHeaderPolicy } from "../upstream-identity/headers.ts";
import type {
  UpstreamIdentity,
  UpstreamIdentityOptions,
  UpstreamTls,
} from "../upstream-identity/identity.ts";
import { databasesOfUpstream } from "../upstream-identity/upstream-databases.ts";
import { downloadHandler, unaryHandler, uploadHandler } from "./call-handlers.ts";
import type { TimeLimits } from "./channel/patience.ts";
import { createServers, isServing } from "./channel/servers.ts";
import type { Upstream } from "./upstream.ts";

/** Options of {@link createGrpcBackend}. */
export interface GrpcBackendOptions {
  /**
   * Addresses of the upstream in the forms of gRPC: `host:port`, `dns:///host:port`, `unix:path`. Calls go to several
   * addresses in turn, and to all servers of a name.
   */
  readonly addresses: readonly string[];
  /** TLS of the connections. Default: they are not encrypted. */
  readonly tls?: UpstreamTls | undefined;
  /** Headers of every call to the upstream. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /**
   * Headers of clients that are forwarded, in lower case; a `*` at the end matches any ending. Default: {@link
   * DEFAULT_PASSED_HEADERS}.
   */
  readonly passHeaders?: readonly string[] | undefined;
  /**
   * Headers in the context of answers that clients get, in the form of `passHeaders`. Default: {@link
   * DEFAULT_RETURNED_HEADERS}.
   */
  readonly returnHeaders?: readonly string[] | undefined;
  /** Credentials of the calls, or their provider. Default: passthrough. */
  readonly identity?: UpstreamIdentityOptions | UpstreamIdentity | undefined;
  /** Pauses after failed requests for tokens, which workers share. Default: those of this backend alone. */
  readonly tokenPauses?: KeyedCells | undefined;
  /** The most that credentials in the upstream's answers allow. Default: `manage`, so that only callers who may do that get them. */
  readonly handsOut?: StorageAccess | undefined;
  /** Longest time to connect, in milliseconds. Default: 5 s. */
  readonly connectMs?: number | undefined;
  /** Limits on the upstream's time, in milliseconds. Default: 120 s for a first byte, 60 s between messages. */
  readonly timeLimits?: Partial<TimeLimits> | undefined;
  /** Caches answers that describe. Default: every call goes to the upstream. */
  readonly cache?: UpstreamCacheLimits | undefined;
  /** Maximum number of calls in flight to an address. Default: 1,000. */
  readonly maxCalls?: number | undefined;
  /** Maximum number of calls that wait for an address; further calls are Throttling at once. Default: 1,000. */
  readonly maxWaiting?: number | undefined;
  /** Retries, circuits and hedging. */
  readonly resilience?: ResiliencePolicy | undefined;
  /** Finds all addresses of a host. Default: the system. */
  readonly resolveHost?: ResolveHost | undefined;
  /** Counts decisions that belong to no call. Default: they are not counted. */
  readonly noteDecision?: NoteDecision | undefined;
  /**
   * Longest duration of a call with a single answer, including all its attempts, in milliseconds. Default: as long as
   * its client waits.
   */
  readonly timeoutMs?: number | undefined;
  /** Silence after which a connection is probed, in milliseconds. Default: 30 s. */
  readonly keepAliveMs?: number | undefined;
  /** Largest message of an upstream's answer, in bytes. Default: 64 MiB. */
  readonly maxMessageBytes?: number | undefined;
  /** Memory of answers that are collected, which backends may share. Default: 512 MiB for this backend. */
  readonly answers?: ByteBudget | undefined;
  readonly log: Logger;
}

const MIB = 1024 * 1024;

/**
 * Creates the backend that forwards every operation to an upstream over gRPC. It connects with the first call.
 *
 * @throws Error with a single line for unusable options.
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
    answers = createAnswerBudget(),
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
    answers,
    limits,
    resolveHost,
  });
  const resilience = createResilience(servers.endpoints, {
    ...options.resilience,
    log,
    noteDecision,
    totalMs: timeoutMs,
  });
  const outages = createOutageLog(log);
  servers.watch((endpoints) => resilience.replace(endpoints));
  const upstream: Upstream = {
    resilience,
    timeoutMs,
    limits: { firstByteMs: 120_000, idleMs: 60_000, ...options.timeLimits },
    policy: createHeaderPolicy({ ...options, keyOfCaller }),
    identity: await createIdentity(identity, options.tokenPauses),
  };
  const handlers = LanceNamespaceService.methods.map((method) => [
    method.localName,
    handlerOf(method, upstream),
  ]);
  const cached = createUpstreamCache(options.cache, { ...upstream, noteDecision });
  const operations = cached(LanceNamespaceService.methods, Object.fromEntries(handlers)) as LanceNamespace;
  return {
    name: "grpc",
    place: addresses.join(", "),
    handsOut: options.handsOut ?? "manage",
    operations,
    rootDatabases: databasesOfUpstream(upstream.policy, operations.describeNamespace),
    ready: () => isServing(servers.endpoints, outages),
    close: () => servers.close(),
  };
}

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
