import type { Call } from "../../namespace/call.ts";
import type { UpstreamResponse } from "./transport.ts";

/** Asks the upstream whether the answer that a cache has still holds. */
export function addCondition(pairs: string[], { validation }: Call): void {
  if (validation?.known !== undefined) pairs.push("if-none-match", validation.known);
}

/** Whether an answer says that it does: 304, or 412 where the request is no GET (RFC 9110, 13.1.2). */
export function stillHolds(status: number, { validation }: Call): boolean {
  return validation?.known !== undefined && (status === 304 || status === 412);
}

/** Tells the cache what the upstream said; whether it was that the kept answer holds. */
export function tellCache({ status, headers }: UpstreamResponse, call: Call): boolean {
  const { validation } = call;
  if (validation === undefined) return false;
  validation.holds = stillHolds(status, call);
  validation.etag = textOf(headers["etag"]);
  validation.cacheControl = textOf(headers["cache-control"]);
  return validation.holds;
}

function textOf(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(", ") : value;
}
