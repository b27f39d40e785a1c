import type { Call } from "../../namespace/call/call.ts";
import type { ErrorName, LimitName } from "../../namespace/errors.ts";

/** Outcome of a call: success, or a row of the error table. */
export type Outcome = "OK" | ErrorName;

/** Receives the start and the end of every call; its functions must be fast. */
export interface CallMetrics {
  began(): void;
  /**
   * Reports that a call is over, with everything that the pipeline has determined about it.
   *
   * @param seconds from the whole request, or the parameters of an upload, to the end of the answer
   * @param bytes of the Arrow body, received or sent; 0 for calls without one
   * @param limit that the call has met. Default: none.
   */
  ended(call: Call, outcome: Outcome, seconds: number, bytes: number, limit?: LimitName): void;
}
