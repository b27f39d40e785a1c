import type { Call } from "../../namespace/call/call.ts";
import { parseTraceParent } from "../../namespace/call/trace-parent.ts";

/** A call that leads from a metric to its trace. */
export interface Exemplar {
  readonly labelSet: { readonly trace_id: string };
  /** In the unit of the metric. */
  readonly value: number;
  /** In seconds since 1970. */
  readonly timestamp: number;
}

/** Returns the exemplar of a call; undefined unless its client records the trace. */
export function exemplarOf({ headers }: Call, value: number): Exemplar | undefined {
  const parent = parseTraceParent(headers["traceparent"]);
  if (parent?.isSampled !== true) return undefined;
  return { labelSet: { trace_id: parent.traceId }, value, timestamp: Date.now() / 1000 };
}
