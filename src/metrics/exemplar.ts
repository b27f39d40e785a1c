import type { Call } from "../namespace/call.ts";

/** A call that leads from a metric to its trace. */
export interface Exemplar {
  readonly labelSet: { readonly trace_id: string };
  /** In the unit of the metric. */
  readonly value: number;
  /** In seconds since 1970. */
  readonly timestamp: number;
}

/**
 * The parts that version 00 of W3C Trace Context and later versions have in common; the last bit marks a recorded
 * trace.
 */
const TRACE_PARENT =
  /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f][13579bdf](?:$|-)/;

/** Returns the exemplar of a call; undefined unless its client records the trace. */
export function exemplarOf({ headers }: Call, value: number): Exemplar | undefined {
  const parent = headers["traceparent"];
  if (parent === undefined) return undefined;
  const [, traceId] = TRACE_PARENT.exec(parent) ?? [];
  if (traceId === undefined) return undefined;
  return { labelSet: { trace_id: traceId }, value, timestamp: Date.now() / 1000 };
}
