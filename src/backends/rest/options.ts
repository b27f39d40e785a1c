import type { Logger } from "pino";
import type { NoteDecision } from "../../namespace/decisions.ts";
import type { ResolveHost } from "../resilience/host-addresses.ts";
import type { ResiliencePolicy } from "../resilience/options.ts";
import type { UpstreamCacheLimits } from "../upstream-cache/cache.ts";
import type { UpstreamIdentity, UpstreamIdentityOptions } from "../upstream-identity/identity.ts";
import type { UpstreamTls } from "../upstream-identity/tls.ts";

/** How a REST upstream speaks. Whatever it is, answers are read tolerantly. */
export type UpstreamDialect = "specification" | "lancedb";

/** How long an upstream may take, in milliseconds; 0 stands for no limit. */
export interface UpstreamTimeLimits {
  /** For a connection, with its handshake. Default: 5,000. */
  readonly connectMs?: number | undefined;
  /** From the end of the request to the head of the answer. Default: 120,000. */
  readonly firstByteMs?: number | undefined;
  /** Between two pieces of an answer. Default: 60,000. */
  readonly idleMs?: number | undefined;
  /** For the whole call; a deadline of the client's that is nearer goes first. Default: 0. */
  readonly totalMs?: number | undefined;
}

/** Where an upstream is and how it is reached. */
export interface HttpTransportOptions {
  /** The base of the REST API without `/v1`, for example `https://catalog.example.com/lance`. */
  readonly uri: string;
  /** The most calls under way, each of which takes a connection. Default: 64. */
  readonly maxCalls?: number | undefined;
  /** The most calls that wait for a connection; more are Throttling at once. Default: 1,000. */
  readonly maxWaiting?: number | undefined;
  /**
   * How long an idle connection is kept to a server that does not say how long it keeps it itself, in milliseconds; one
   * that says it in `keep-alive` is believed. A request on a connection that the server ends at that moment fails, so that
   * the default, 4,000, is below the 5 s of common servers.
   */
  readonly keepAliveMs?: number | undefined;
  /**
   * How long a connection is used, in milliseconds; those after it find the host's addresses anew. Default: 300,000.
   */
  readonly connectionAgeMs?: number | undefined;
  readonly timeLimits?: UpstreamTimeLimits | undefined;
  readonly tls?: UpstreamTls | undefined;
  /** The largest answer that is not a stream, in bytes. Default: 64 MiB. */
  readonly maxAnswerBytes?: number | undefined;
}

/** Options of {@link createRestBackend}. */
export interface RestBackendOptions extends Omit<HttpTransportOptions, "uri"> {
  /** The bases of the REST API without `/v1`; several are the same catalog, and any may get any call. */
  readonly uri: string | readonly string[];
  readonly log: Logger;
  /** How calls are repeated, and when they are not made. */
  readonly resilience?: ResiliencePolicy | undefined;
  /** Counts decisions that are no call's own. Default: nobody does. */
  readonly noteDecision?: NoteDecision | undefined;
  /** Keeps answers that describe. Default: every call goes to the upstream. */
  readonly cache?: UpstreamCacheLimits | undefined;
  /** Headers of every request, for example the name of a database. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** What joins the names of an identifier in paths. Default: `$`. */
  readonly delimiter?: string | undefined;
  /** What the upstream is. Default: `specification`, which the Rust adapter and other gateways speak, too. */
  readonly dialect?: UpstreamDialect | undefined;
  /** Credentials of the calls, or what provides them. Default: passthrough. */
  readonly identity?: UpstreamIdentityOptions | UpstreamIdentity | undefined;
  /**
   * Headers of clients that are passed on, in lower case; a `*` at the end stands for any ending.
   * Default: {@link DEFAULT_PASSED_HEADERS}.
   */
  readonly passHeaders?: readonly string[] | undefined;
  /** Headers of answers that clients get, in the same form. Default: {@link DEFAULT_RETURNED_HEADERS}. */
  readonly returnHeaders?: readonly string[] | undefined;
  /** Finds all addresses of a host. Default: as the system does. */
  readonly resolveHost?: ResolveHost | undefined;
}
