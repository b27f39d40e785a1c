import type { IncomingHttpHeaders } from "node:http";
import type { Call } from "../../namespace/call/call.ts";
import { parseTraceParent } from "../../namespace/call/headers.ts";
import { joinIdentifier } from "../../namespace/identifier.ts";
import { clipped, escapeInvisible } from "../../runtime/text.ts";
import type { MaskPath, Refusal } from "./refusals.ts";

/** Level `info`, in the numbers of pino. */
const INFO = 30;

/**
 * Returns the line of the access log about a request, as JSON without a line break. Of the client's text it has the
 * path of calls, the request's id and the user agent, and no other header; other paths are masked.
 */
export function accessLine(entry: AccessEntry, mask: MaskPath): string {
  const { client, call, refusal, method, path, http, status, userAgent, headers } = entry;
  const begun = call?.begun === true;
  return escapeInvisible(
    JSON.stringify({
      level: INFO,
      time: Date.now(),
      msg: "request",
      requestId: call?.requestId ?? refusal?.requestId,
      client,
      protocol: call?.protocol ?? refusal?.protocol ?? "http",
      http,
      method,
      path: path === undefined ? undefined : begun ? clipped(path) : mask(path),
      operation: call?.method.name,
      database: call?.database,
      id: begun ? clipped(joinIdentifier(call.id)) : undefined,
      status,
      code: codeOf(entry),
      fault: refusal?.fault,
      bytesIn: entry.received,
      bytesOut: entry.sent,
      userAgent: userAgent === undefined ? undefined : clipped(userAgent),
      principal: call?.principal?.name,
      key: call?.principal?.credentialId,
      traceId: traceIdOf(call, headers?.["traceparent"]),
      ms: Math.round(entry.seconds * 1_000_000) / 1000,
    }),
  );
}

/** Returns how the request ended; pages have no more than their status. */
function codeOf({ call, refusal, finished }: AccessEntry): string | undefined {
  if (refusal !== undefined) return refusal.code;
  if (call === undefined) return finished ? undefined : "Cancelled";
  if (call.begun === true) return call.outcome ?? "Cancelled";
  // Health checks and reflection do not pass the pipeline.
  return finished ? "OK" : "Cancelled";
}

function traceIdOf(call: Call | undefined, header: string | string[] | undefined): string | undefined {
  return parseTraceParent(call?.headers["traceparent"] ?? header?.toString())?.traceId;
}

/** Facts about a request at its end, for the access log. */
export interface AccessEntry {
  /** Default: the bytes were not a request. */
  readonly method?: string | undefined;
  /** Path as it was sent, without the query. */
  readonly path?: string | undefined;
  /** Version of HTTP. */
  readonly http?: string | undefined;
  readonly headers?: IncomingHttpHeaders;
  /** Network address of the client. */
  readonly client?: string | undefined;
  readonly userAgent?: string | undefined;
  /** HTTP status of the answer. Default: none was sent. */
  readonly status?: number | undefined;
  /** Whether the answer was sent to its end. */
  readonly finished: boolean;
  /** The call that the request has become. */
  readonly call?: Call | undefined;
  /** Reason why it has not become one. */
  readonly refusal?: Refusal | undefined;
  /** Bytes of the body of the request. */
  readonly received: number;
  /** Bytes of the body of the answer. */
  readonly sent: number;
  readonly seconds: number;
}

/** Receives every request at its end; it must be fast. */
export type NoteAccess = (entry: AccessEntry) => void;
