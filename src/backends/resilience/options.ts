import type { Logger } from "pino";
import type { NoteDecision } from "../../namespace/decisions.ts";

/** How calls of an upstream are repeated, and when they are not made. All times are in milliseconds. */
export interface ResiliencePolicy {
  /** How often a call is made again at the most; 0 for never. Default: 2. */
  readonly retries?: number | undefined;
  /** How many repetitions there may be for each call, from 0 to 1; a few a second are always free. Default: 0.2. */
  readonly retryShare?: number | undefined;
  /** The longest wait before the first repetition; it doubles with each further one. Default: 50. */
  readonly backoffMs?: number | undefined;
  /** The longest wait before any repetition; an upstream that asks for more gets none. Default: 5,000. */
  readonly maxBackoffMs?: number | undefined;
  /** After which time a read without an answer is made a second time at once; 0 for never. Default: 0. */
  readonly hedgeAfterMs?: number | undefined;
  /** After how many failures in a row an address is not called for a while; 0 for never. Default: 10. */
  readonly circuitFailures?: number | undefined;
  /** How long that is at first; it doubles with each probe that fails, up to 60 s. Default: 1,000. */
  readonly circuitOpenMs?: number | undefined;
  /**
   * How long an address may leave a call without an answer, and answer no other one, before a caller who gives up counts
   * as a failure; 0 for any time. Default: 5,000.
   */
  readonly silenceMs?: number | undefined;
  /** How long an address that fails far more often than the others is left out at first. Default: 10,000. */
  readonly ejectMs?: number | undefined;
}

/** What {@link createResilience} needs beside its addresses. */
export interface ResilienceOptions extends ResiliencePolicy {
  readonly log: Logger;
  /** Counts decisions that are no call's own. Default: nobody does. */
  readonly noteDecision?: NoteDecision | undefined;
  /** The time that a call may take with all its attempts; 0 for no limit. Default: 0. */
  readonly totalMs?: number | undefined;
}
