import type { KeyedCells } from "../../runtime/threads/keyed-cells.ts";
import { type SharedQuantity, UNSHARED } from "../../runtime/threads/sharing.ts";
import { DEFAULT_SILENCE_MS } from "../../wires/limits.ts";

/** Limits of connections. */
export interface ConnectionLimits {
  /**
   * Longest time until a connection sends its first bytes of HTTP, the handshake of TLS included, in milliseconds.
   * Default: 10 s.
   */
  readonly firstBytesMs?: number;
  /** Longest time for the headers of an HTTP/1.1 request, in milliseconds. Default: 30 s. */
  readonly headersMs?: number;
  /**
   * How long an idle HTTP/1.1 connection is kept, in milliseconds. Default: 620 s, which outlives common proxies'
   * pools.
   */
  readonly keepAliveMs?: number;
  /**
   * Longest silence of a client whose turn it is, in milliseconds: it neither continues a body nor reads an answer; 0
   * for no limit. Default: 60 s.
   */
  readonly silenceMs?: number;
  /** How long an HTTP/2 connection is kept before its first call, in milliseconds. Default: 60 s. */
  readonly firstCallMs?: number;
  /** How long an HTTP/2 connection is kept after its last call, in milliseconds. Default: 15 min. */
  readonly idleSessionMs?: number;
  /**
   * How long a connection has been idle at least that is ended for a new one at the maximum number of connections, in
   * milliseconds. Default: 5 s, so that clients that call more often keep theirs.
   */
  readonly replaceableMs?: number;
  /**
   * How long a call may still run on a connection whose address has more than its share and that makes room for a new one, in
   * milliseconds. Default: 30 s.
   */
  readonly farewellMs?: number;
  /** Maximum number of connections. Default: 4096. */
  readonly maxConnections?: number;
  /** Connections of all workers of the process. Default: there is a single worker. */
  readonly connections?: SharedQuantity | undefined;
  /** Addresses that reset too many streams, of the shape {@link RESETS_SHAPE}. Default: those of this thread alone. */
  readonly resetCells?: KeyedCells | undefined;
  /**
   * How many bytes of an HTTP/2 stream a client may send ahead of their reader; with the latency it bounds the speed
   * of an upload. Default: 8 MiB.
   */
  readonly streamWindowBytes?: number;
  /**
   * How many bytes a client may have in transit on all streams of a connection together. Node gives the window back as soon as bytes
   * arrive, so it does not bound what waits for readers: the streams' windows and the memory budget do. Default: 32 MiB.
   */
  readonly sessionWindowBytes?: number;
  /** Maximum number of open calls on an HTTP/2 connection. Default: 100. */
  readonly maxConcurrentStreams?: number;
  /**
   * Number of open calls on all HTTP/2 connections of which each has an equal share. A connection only gets more than its
   * share while less than half of them are open. Default: 65,536.
   */
  readonly maxStreams?: number;
}

const MIB = 1024 * 1024;

/** Returns limits of connections with their defaults. */
export function limitsOf({
  firstBytesMs = 10_000,
  headersMs = 30_000,
  keepAliveMs = 620_000,
  silenceMs = DEFAULT_SILENCE_MS,
  firstCallMs = 60_000,
  idleSessionMs = 900_000,
  replaceableMs = 5_000,
  farewellMs = 30_000,
  maxConnections = 4096,
  connections = UNSHARED,
  resetCells,
  streamWindowBytes = 8 * MIB,
  sessionWindowBytes = 32 * MIB,
  maxConcurrentStreams = 100,
  maxStreams = 65_536,
}: ConnectionLimits) {
  const times = {
    firstBytesMs,
    headersMs,
    keepAliveMs,
    silenceMs,
    firstCallMs,
    idleSessionMs,
    replaceableMs,
    farewellMs,
  };
  const windows = { streamWindowBytes, sessionWindowBytes };
  return { ...times, ...windows, maxConnections, connections, resetCells, maxConcurrentStreams, maxStreams };
}
