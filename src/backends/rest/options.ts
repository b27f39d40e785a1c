import type { Logger } from "pino";
import type { NoteDecision } from "../../namespace/figures.ts";
import type { StorageAccess } from "../../namespace/lance-namespace.ts";
import type { ByteBudget } from "../../namespace/memory/byte-budget.ts";
import type { KeyedCells } from "../../runtime/threads/keyed-cells.ts";
import type { ResolveHost } from "../resilience/followed-hosts.ts";
import type { ResiliencePolicy } from "../resilience/resilience.ts";
import type { UpstreamCacheLimits } from "../upstream-cache/cache.ts";
import type {
  UpstreamIdentity,
  UpstreamIdentityOptions,
  UpstreamTls,
} from "../upstream-identity/identity.ts";

/** Dialect of a REST upstream. Answers are read leniently in every dialect. */
export type UpstreamDialect = "specification" | "lancedb";

/** Limits on an upstream's time, in milliseconds; 0 for no limit. */
export interface UpstreamTimeLimits {
  /** Limit on a connection with its handshake. Default: 5,000. */
  readonly connectMs?: number | undefined;
  /** Limit from the end of the request to the head of the answer. Default: 120,000. */
  readonly firstByteMs?: number | undefined;
  /** Limit between two pieces of an answer. Default: 60,000. */
  readonly idleMs?: number | undefined;
  /** Limit on the whole call; an earlier deadline of the client overrides it. Default: 0. */
  readonly totalMs?: number | undefined;
}

/** Address of an upstream and its connections. */
export interface HttpTransportOptions {
  /** Base of the REST API without `/v1`, for example `https://catalog.example.com/lance`. */
  readonly uri: string;
  /** Maximum number of calls in flight, each of which takes a connection. Default: 64. */
  readonly maxCalls?: number | undefined;
  /** Maximum number of calls that wait for a connection; further calls are Throttling at once. Default: 1,000. */
  readonly maxWaiting?: number | undefined;
  /**
   * How long an idle connection is kept to a server that does not announce its own timeout, in milliseconds; an
   * announced `keep-alive` overrides it. A request on a connection that the server closes at that moment fails, so
   * the default, 4,000, is below the 5 s of common servers.
   */
  readonly keepAliveMs?: number | undefined;
  /**
   * How long a connection is used, in milliseconds; later ones look up the host's addresses again. Default: 300,000.
   */
  readonly connectionAgeMs?: number | undefined;
  readonly timeLimits?: UpstreamTimeLimits | undefined;
  readonly tls?: UpstreamTls | undefined;
  /** Largest answer that is not a stream, in bytes. Default: 64 MiB. */
  readonly maxAnswerBytes?: number | undefined;
}

/** Options of {@link createRestBackend}. */
export interface RestBackendOptions extends Omit<HttpTransportOptions, "uri"> {
  /** Bases of the REST API without `/v1`; several are the same catalog, and any of them may get any call. */
  readonly uri: string | readonly string[];
  readonly log: Logger;
  /** Memory of answers that are collected, which backends may share. Default: 512 MiB for this backend. */
  readonly answers?: ByteBudget | undefined;
  /** When calls are retried, and when they are not made. */
  readonly resilience?: ResiliencePolicy | undefined;
  /** Counts decisions that belong to no call. Default: they are not counted. */
  readonly noteDecision?: NoteDecision | undefined;
  /** Caches answers that describe. Default: every call goes to the upstream. */
  readonly cache?: UpstreamCacheLimits | undefined;
  /** Headers of every request, for example the name of a database. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Delimiter between the names of an identifier in paths. Default: `$`. */
  readonly delimiter?: string | undefined;
  /** Kind of the upstream. Default: `specification`, which the Rust adapter and other gateways also speak. */
  readonly dialect?: UpstreamDialect | undefined;
  /** The most that credentials in the upstream's answers allow. Default: `manage`, so that only callers who may do that get them. */
  readonly handsOut?: StorageAccess | undefined;
  /** Credentials of the calls, or their provider. Default: passthrough. */
  readonly identity?: UpstreamIdentityOptions | UpstreamIdentity | undefined;
  /** Pauses after failed requests for tokens, which workers share. Default: those of this backend alone. */
  readonly tokenPauses?: KeyedCells | undefined;
  /**
   * Headers of clients that are forwarded, in lower case; a `*` at the end matches any ending. Default: {@link
   * DEFAULT_PASSED_HEADERS}.
   */
  readonly passHeaders?: readonly string[] | undefined;
  /** Headers of answers that clients get, in the form of `passHeaders`. Default: {@link DEFAULT_RETURNED_HEADERS}. */
  readonly returnHeaders?: readonly string[] | undefined;
  /** Finds all addresses of a host. Default: the system's resolver. */
  readonly resolveHost?: ResolveHost | undefined;
}
