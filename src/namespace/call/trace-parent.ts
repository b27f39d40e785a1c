/** Place of a call in a trace, as in the header `traceparent` of W3C Trace Context. */
export interface TraceParent {
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
