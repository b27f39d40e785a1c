import type { Call } from "../../namespace/call/call.ts";
import type { UpstreamResponse } from "./transport/transport.ts";

/** Asks the upstream whether the cached answer is still valid. */
export function addCondition(pairs: string[], { validation }: Call): void {
  if (validation?.known !== undefined) pairs.push("if-none-match", validation.known);
}

/** Whether an answer confirms that: 304, or 412 if the request is not a GET (RFC 9110, 13.1.2). */
export function stillHolds(status: number, { validation }: Call): boolean {
  return validation?.known !== undefined && (status === 304 || status === 412);
}

/** Passes the upstream's answer to the cache; returns whether the cached answer is valid. */
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
