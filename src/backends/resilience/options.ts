import type { Logger } from "pino";
import type { NoteDecision } from "../../namespace/figures/decisions.ts";

/** When calls of an upstream are retried, and when they are not made. All times are in milliseconds. */
export interface ResiliencePolicy {
  /** Maximum number of retries of a call; 0 for none. Default: 2. */
  readonly retries?: number | undefined;
  /** Retries that each call earns, from 0 to 1; a few a second are always free. Default: 0.2. */
  readonly retryShare?: number | undefined;
  /** Longest delay before the first retry; it doubles with each further retry. Default: 50. */
  readonly backoffMs?: number | undefined;
  /** Longest delay before any retry; an upstream that asks for more gets no retry. Default: 5,000. */
  readonly maxBackoffMs?: number | undefined;
  /** Time after which a read without an answer is hedged; 0 for never. Default: 0. */
  readonly hedgeAfterMs?: number | undefined;
  /** Number of consecutive failures that opens the circuit of an address; 0 for never. Default: 10. */
  readonly circuitFailures?: number | undefined;
  /** How long a circuit stays open at first; the time doubles with each failed probe, up to 60 s. Default: 1,000. */
  readonly circuitOpenMs?: number | undefined;
  /**
   * How long an address must leave a call unanswered, and answer no other call, before a caller that gives up counts
   * as a failure; 0 for any time. Default: 5,000.
   */
  readonly silenceMs?: number | undefined;
  /** How long an address that fails far more often than the others is ejected at first. Default: 10,000. */
  readonly ejectMs?: number | undefined;
}

/** Options of {@link createResilience}, in addition to its addresses. */
export interface ResilienceOptions extends ResiliencePolicy {
  readonly log: Logger;
  /** Counts decisions that belong to no call. Default: they are not counted. */
  readonly noteDecision?: NoteDecision | undefined;
  /** Longest duration of a call with all its attempts; 0 for no limit. Default: 0. */
  readonly totalMs?: number | undefined;
}
