import { LanceError } from "../../namespace/errors.ts";
import type { ResilientCall } from "./resilience.ts";

/**
 * The error of a call that is not made because its upstream fails.
 *
 * @param ms when it may be made, in milliseconds from now
 */
export function refusal(call: ResilientCall, ms: number): LanceError {
  call.note("circuit_open");
  return new LanceError("ServiceUnavailable", "the upstream catalog fails and is not called for a while", {
    headers: { "retry-after": String(Math.max(1, Math.ceil(ms / 1000))) },
  });
}
