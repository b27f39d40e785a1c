import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import type { Logger } from "pino";
import { type Call, createCall } from "../../namespace/call/call.ts";
import type { Reception } from "../../namespace/call/reception.ts";
import { type ErrorName, errorEntry, LanceError } from "../../namespace/errors.ts";
import {
  type ByteBudget,
  createByteBudget,
  DEFAULT_MAX_MESSAGE_BYTES,
} from "../../namespace/memory/byte-budget.ts";
import type { NoteRefusal } from "../../pipeline/records/refusals.ts";
import { createLoopPace, type LoopPace, UNPACED } from "../../runtime/loop-pace.ts";
import { noteCall, originOf } from "../arrival.ts";
import { timeAllowed } from "../deadline.ts";
import { DEFAULT_SILENCE_MS, FREE_BYTES } from "../limits.ts";
import { pathOf, type Rpc } from "../rpc.ts";
import { ACCEPTED_ENCODINGS, acceptsGzip } from "./message.ts";
import { type Served, ServerCall, stopReading } from "./server-call.ts";
import type { ErrorDetails } from "./status.ts";
import { serveStream } from "./stream.ts";
import { serveUnary } from "./unary.ts";

/** Limits of the gRPC wire. */
export interface GrpcLimits {
  /** Largest accepted message, in bytes, packed and unpacked. Default: 16 MiB. */
  readonly maxMessageBytes?: number;
  /**
   * Size in bytes above which unary answers are packed for clients that accept gzip. Default: 1024; Infinity turns it
   * off. Messages of streams are never packed: the large ones contain Arrow, which has its own compression.
   */
  readonly gzipMinBytes?: number;
  /** Deadline of unary calls that bring none, in milliseconds; 0 for none. Default: none. */
  readonly defaultDeadlineMs?: number;
  /** Longest time in which a client reads nothing of an answer, in milliseconds; 0 for no limit. Default: 60 s. */
  readonly silenceMs?: number;
  /** Memory budget of messages, from their arrival to the end of their calls. Default: no bound. */
  readonly budget?: ByteBudget;
  /** Shares turns of the event loop among messages. Default: a pace of this handler alone. */
  readonly pace?: LoopPace | undefined;
  /** Shares turns of the event loop among the messages of probes. Default: they do not wait. */
  readonly probePace?: LoopPace | undefined;
}

/** Options of {@link createGrpcHandler}. */
export interface GrpcHandlerOptions extends GrpcLimits {
  readonly rpcs: readonly Rpc[];
  readonly log: Logger;
  /** Called for requests that fail before they become a call. */
  readonly refused?: NoteRefusal | undefined;
  /** Lists the details of errors. Default: the error response of the namespace API. */
  readonly errorDetails?: ErrorDetails | undefined;
}

/**
 * Answers an HTTP/2 stream whose content type begins with `application/grpc`.
 *
 * @param fault error of a request that the server refuses. Default: it serves the request.
 */
export type GrpcHandler = (
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  fault?: LanceError | undefined,
) => void;

const DEFAULT_GZIP_MIN_BYTES = 1024;

const CONTENT_TYPE = /^application\/grpc(?:\+proto)?(?:\s*;.*)?$/i;

/**
 * Serves gRPC on the streams of node:http2, without its request and response objects.
 *
 * Specified in "gRPC over HTTP/2" of the gRPC project. Every failure ends in a status; a request that is not gRPC at
 * all gets 405 or 415.
 */
export function createGrpcHandler(options: GrpcHandlerOptions): GrpcHandler {
  const { rpcs, log, maxMessageBytes = DEFAULT_MAX_MESSAGE_BYTES } = options;
  const { gzipMinBytes = DEFAULT_GZIP_MIN_BYTES, budget = createByteBudget() } = options;
  const { silenceMs = DEFAULT_SILENCE_MS, defaultDeadlineMs = 0 } = options;
  const { pace = createLoopPace(), probePace = UNPACED } = options;
  const byPath = new Map(rpcs.map((rpc) => [pathOf(rpc.method), rpc]));

  return (stream, headers, fault) => {
    const serverCall = new ServerCall(stream, headers, log, options.refused);
    serverCall.silenceMs = silenceMs;
    if (options.errorDetails !== undefined) serverCall.errorDetails = options.errorDetails;
    if (headers[":method"] !== "POST") return refuse(serverCall, "MethodNotAllowed", { allow: "POST" });
    if (!CONTENT_TYPE.test(headers["content-type"] ?? "")) return refuse(serverCall, "UnsupportedMediaType");
    try {
      if (fault !== undefined) throw fault;
      const rpc = byPath.get(headers[":path"] ?? "");
      if (rpc === undefined) throw new LanceError("RouteNotFound", "the server has no such method");
      const gzipIn = readsGzip(headers["grpc-encoding"]);
      const call = begin(serverCall, rpc, headers, defaultDeadlineMs);
      const accepted = acceptsGzip(headers["grpc-accept-encoding"] as string | undefined);
      const served = {
        serverCall,
        call,
        hold: budget.open(FREE_BYTES),
        pace: rpc.isProbe ? probePace : pace,
        gzipIn,
        gzipMinBytes: accepted ? gzipMinBytes : Number.POSITIVE_INFINITY,
        maxMessageBytes,
      };
      const received = rpc.receive?.(call);
      if (received instanceof Promise) void received.then((reception) => serve(rpc, served, reception));
      else serve(rpc, served, received);
    } catch (thrown) {
      serverCall.fail(thrown);
    }
  };
}

/** Reads and answers a call. @param reception what is known of its caller. */
function serve(rpc: Rpc, served: Served, reception: Reception | undefined): void {
  if (served.serverCall.done) return;
  served.call.reception = reception;
  if (rpc.kind === "unary") serveUnary(rpc, served);
  else serveStream(rpc, served);
}

function begin(serverCall: ServerCall, rpc: Rpc, headers: IncomingHttpHeaders, defaultMs: number): Call {
  const timeout = headers["grpc-timeout"];
  const given = timeout === undefined ? undefined : parseTimeout(String(timeout));
  const milliseconds = timeAllowed(given, rpc.kind === "unary" ? defaultMs : 0);
  const call = createCall({
    method: rpc.method,
    protocol: "grpc",
    requestId: serverCall.requestId,
    headers: metadataOf(headers),
    ...originOf(headers, serverCall.stream.session?.socket),
    signal: serverCall.signal,
    deadline: milliseconds === undefined ? undefined : Date.now() + milliseconds,
    accept: undefined,
    log: serverCall.log,
    // A chunk has been sent, or copied, before the next one is asked for.
    releasesChunks: true,
    cutOff: (error) => serverCall.cutOff(error),
  });
  if (rpc.kind === "unary") call.takes = "binary";
  serverCall.call = call;
  noteCall(headers, call);
  serverCall.responseHeaders = call.responseHeaders;
  if (milliseconds !== undefined) serverCall.expireIn(milliseconds);
  return call;
}

function readsGzip(encoding: string | string[] | undefined): boolean {
  if (encoding === "gzip") return true;
  if (encoding === undefined || encoding === "identity") return false;
  throw new LanceError("Unsupported", "unknown message encoding", {
    headers: { "grpc-accept-encoding": ACCEPTED_ENCODINGS },
  });
}

function metadataOf(headers: IncomingHttpHeaders): Record<string, string> {
  const metadata: Record<string, string> = Object.create(null);
  for (const name in headers) {
    if (name.startsWith(":")) continue;
    const value = headers[name];
    metadata[name] = typeof value === "string" ? value : (value ?? []).join(", ");
  }
  return metadata;
}

function refuse(
  serverCall: ServerCall,
  name: ErrorName,
  headers: Readonly<Record<string, string>> = {},
): void {
  serverCall.noteRefusal(name);
  serverCall.stream.respond({ ":status": errorEntry(name).httpStatus, ...headers }, { endStream: true });
  stopReading(serverCall.stream);
}

const FORM = /^(\d{1,8})([HMSmun])$/;

const UNIT_MS: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1_000,
  m: 1,
  u: 1e-3,
  n: 1e-6,
};

/**
 * Returns the milliseconds of a `grpc-timeout` header: up to eight digits and a unit.
 *
 * @throws LanceError InvalidInput, for anything else.
 */
export function parseTimeout(header: string): number {
  const [, digits, unit] = FORM.exec(header) ?? [];
  if (digits === undefined || unit === undefined) {
    throw new LanceError("InvalidInput", `grpc-timeout ${JSON.stringify(header.slice(0, 32))} is malformed`);
  }
  return Number(digits) * (UNIT_MS[unit] as number);
}
