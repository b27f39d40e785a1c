import { currentTraceParent } from "../../runtime/tracing.ts";

const NAME = "traceparent";

/** Returns a copy of headers, names and values in turn, whose `traceparent` continues the current span, if there is any. */
export function inTrace(pairs: readonly string[]): string[] {
  const own = currentTraceParent();
  if (own === undefined) return [...pairs];
  const at = pairs.findIndex((text, index) => index % 2 === 0 && text === NAME);
  return at === -1 ? [...pairs, NAME, own] : pairs.with(at + 1, own);
}
