import { LanceError } from "../errors.ts";

/**
 * Headers that belong to a connection, a message, a proxy or the gateway. Nothing forwards them, and no entry of a
 * context replaces one.
 */
const OWN =
  /^(?::.*|accept|accept-encoding|connection|content-.*|cookie|expect|forwarded|grpc-.*|host|http2-settings|keep-alive|proxy-.*|range|sec-.*|set-cookie|te|trailer|transfer-encoding|upgrade|x-forwarded-.*|x-request-id|x-request-timeout-ms)$/;

/** Headers by which a client names a database, the first one before the second; each may have a `…-prefix` beside it. */
export const DATABASE_HEADERS = ["x-service-database", "x-lancedb-database"] as const;

const NONE: ReadonlySet<string> = new Set();

/**
 * Returns a test, for lower-case names, of the headers that the gateway does not forward, including those that
 * `connection` names.
 */
export function endsHere(headers: Readonly<Record<string, string>>): (name: string) => boolean {
  const named = namedByConnection(headers["connection"]);
  return (name) => OWN.test(name) || named.has(name);
}

function namedByConnection(connection: string | undefined): ReadonlySet<string> {
  // Nearly every client sends exactly this, and the name is in the list above.
  if (connection === undefined || connection === "keep-alive") return NONE;
  return new Set(
    connection
      .toLowerCase()
      .split(",")
      .map((name) => name.trim()),
  );
}

/** Headers by which a client demands the newest version that it has written, and the newest that it has read. */
const MIN_VERSIONS = ["x-lancedb-min-version", "x-lancedb-min-read-version"] as const;

/** Header by which a client demands the state of a time, in the form of RFC 3339. */
const MIN_TIMESTAMP = "x-lancedb-min-timestamp";

/** Headers by which LanceDB's clients demand how new the state is that answers a read. */
export const FRESHNESS_HEADERS: readonly string[] = [...MIN_VERSIONS, MIN_TIMESTAMP];

const RFC_3339 = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.(\d+))?(?:[Zz]|[+-]\d\d:\d\d)$/;

/** Whether a call demands how new the state is that answers it. */
export function demandsFreshness(headers: Readonly<Record<string, string>>): boolean {
  return FRESHNESS_HEADERS.some((name) => headers[name] !== undefined);
}

/**
 * Returns the time whose state the headers of a call demand, in epoch milliseconds; undefined if they demand none. A
 * demanded version may have any age, so it demands the present state. A time in the future is the present, by the clock
 * of this machine.
 *
 * @throws LanceError InvalidInput for a malformed header
 */
export function demandedTime(
  headers: Readonly<Record<string, string>>,
  now = Date.now(),
): number | undefined {
  let demanded: number | undefined;
  for (const name of MIN_VERSIONS) {
    const value = headers[name];
    if (value === undefined) continue;
    if (!/^\d{1,20}$/.test(value)) throw malformed(name, "a version");
    demanded = now;
  }
  const text = headers[MIN_TIMESTAMP];
  if (text === undefined) return demanded;
  const match = RFC_3339.exec(text);
  const time = match === null ? Number.NaN : Date.parse(text);
  if (Number.isNaN(time)) throw malformed(MIN_TIMESTAMP, "a time in the form of RFC 3339");
  // Digits below a millisecond are cut off.
  const isCut = (match?.[1]?.length ?? 0) > 3;
  return demanded ?? Math.min(isCut ? time + 1 : time, now);
}

function malformed(name: string, form: string): LanceError {
  return new LanceError("InvalidInput", `the value of header ${name} is not ${form}`);
}

/** Place of a call in a trace, as in the header `traceparent` of W3C Trace Context. */
interface TraceParent {
  readonly traceId: string;
  /** Id of the span that makes the call. */
  readonly spanId: string;
  /** Whether the caller records the trace. */
  readonly isSampled: boolean;
}

/** The parts that version 00 and later versions have in common; the last bit marks a recorded trace. */
const TRACE_PARENT =
  /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]([0-9a-f])(?:$|-)/;

/** Parses a `traceparent` header; undefined for any other text. */
export function parseTraceParent(header: string | undefined): TraceParent | undefined {
  if (header === undefined) return undefined;
  const [, traceId, spanId, flags = "0"] = TRACE_PARENT.exec(header) ?? [];
  if (traceId === undefined || spanId === undefined) return undefined;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 };
}
