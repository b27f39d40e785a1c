import type { DescMethod } from "@bufbuild/protobuf";
import type { Logger } from "pino";
import { type Call, endingOf } from "../../namespace/call/call.ts";
import { isLanceError, LanceError, type UpstreamFault } from "../../namespace/errors.ts";
import type { NoteDecision } from "../../namespace/figures.ts";
import { isRead } from "../../namespace/operations/method-facts.ts";
import type { Health } from "../../runtime/circuit.ts";
import type { Ending } from "../../runtime/late-signal.ts";

/** How a call may be retried. */
export type Repeatable =
  /** The call changes nothing and has a single answer, so it may even run twice at once. */
  | "parallel"
  /**
   * The call may be retried after a failure: it changes nothing, or has a key by which the upstream recognises it.
   */
  | "serial"
  /** The call may be retried only if nothing of it was sent. */
  | "unsent";

/** The part of a call that resilience reads and writes. */
export type ResilientCall = Pick<Call, "signal" | "deadline" | "note">;

/** The part of a call that takes note of decisions. */
export type Notes = Pick<Call, "note">;

/**
 * Makes a call once.
 *
 * @param target address of the attempt
 * @param ending ends the attempt, which then throws its reason
 * @throws LanceError whose `fault` names the failure of the upstream, if there was one
 */
export type Attempt<T, R> = (target: T, ending: Ending, progress: Progress) => Promise<R>;

/** Context of an attempt: the time of earlier attempts, and a report of its own progress. */
export interface Progress {
  /** How much of `totalMs` earlier attempts have taken, in milliseconds; 0 without a limit. */
  readonly elapsedMs: number;
  /**
   * Reports that the upstream has the whole request and must now answer. An attempt that ends without this report
   * proves nothing about an upstream's silence.
   */
  onSent(): void;
}

/** An address of an upstream. */
export interface Endpoint<T> {
  /** Target of an attempt, for example a pool of connections. */
  readonly target: T;
  /** Name in the log, for example `10.0.0.1:2333`. */
  readonly name: string;
}

/** Makes calls of an upstream: it retries them where that is safe, and rejects them where they would fail. */
export interface Resilience<T> {
  /**
   * Makes a call at a working address, and retries it after a failure that allows it. It records its decisions in the
   * call.
   *
   * @throws the error of the last attempt; ServiceUnavailable with `retry-after` if the circuits of all addresses are
   *   open; the reason of the call's signal
   */
  run<R>(call: ResilientCall, repeatable: Repeatable, attempt: Attempt<T, R>): Promise<R>;
  /** Replaces the addresses; those whose targets stay keep their history, and calls in flight continue. */
  replace(endpoints: readonly Endpoint<T>[]): void;
}

/** Calls a target, once. */
export function callOnce<T>(target: T): Pick<Resilience<T>, "run"> {
  return {
    run: (call, repeatable, attempt) =>
      withOutcome(repeatable, attempt(target, endingOf(call), { elapsedMs: 0, onSent() {} })),
  };
}

/**
 * Waits for a call. If a change was sent and its answer is lost, the error says so: a client would repeat the change
 * after a ServiceUnavailable.
 *
 * @throws LanceError OutcomeUnknown, or the error of the call
 */
export async function withOutcome<R>(repeatable: Repeatable, called: Promise<R>): Promise<R> {
  try {
    return await called;
  } catch (error) {
    const isLost = error instanceof LanceError && error.fault !== undefined && LOST.has(error.fault);
    throw repeatable === "unsent" && isLost ? lostAnswer(error) : error;
  }
}

/** Faults of an upstream that has got a request, or a part of it, and whose answer is lost. */
const LOST: ReadonlySet<UpstreamFault> = new Set<UpstreamFault>(["reset", "broken", "oversized"]);

/** Returns the error of a change whose answer is lost; a DeadlineExceeded says as much by itself. */
export function lostAnswer(error: unknown): unknown {
  if (!isLanceError(error, "ServiceUnavailable")) return error;
  const { message, fault, headers, instance } = error;
  return new LanceError("OutcomeUnknown", `${message}; check its effect before you retry`, {
    cause: error,
    fault,
    headers,
    ...(instance !== undefined && { instance }),
  });
}

/**
 * Returns how a method's call may be retried.
 *
 * @param headers names and values in turn, as the upstream gets them
 */
export function repeatableOf(method: DescMethod, headers: readonly string[]): Repeatable {
  if (isRead(method)) return method.methodKind === "unary" ? "parallel" : "serial";
  // A streamed body can be read once. A unary message can be sent again if a key tells the upstream that it is a
  // retry.
  if (method.methodKind === "client_streaming") return "unsent";
  return headers.some((name, index) => index % 2 === 0 && name === "idempotency-key") ? "serial" : "unsent";
}

/**
 * Creates the error of a call that is not made because the upstream's circuit is open.
 *
 * @param ms when the next call may be made, in milliseconds from now
 */
export function refusal(call: Notes, ms: number): LanceError {
  call.note("circuit_open");
  return new LanceError("ServiceUnavailable", "upstream circuit breaker is open", {
    headers: { "retry-after": String(Math.max(1, Math.ceil(ms / 1000))) },
  });
}

/** Consequences of a fault. */
interface FaultRule {
  /** Calls that may be retried after it. */
  readonly repeats: readonly Repeatable[];
  /** Health of the address. */
  readonly health: Health;
}

const ALL: readonly Repeatable[] = ["parallel", "serial", "unsent"];
const SAFE: readonly Repeatable[] = ["parallel", "serial"];
const NONE: readonly Repeatable[] = [];

/** The rules, which docs/upstreams.md lists for people. */
const RULES: Readonly<Record<UpstreamFault, FaultRule>> = {
  unreached: { repeats: ALL, health: "failing" },
  reset: { repeats: SAFE, health: "failing" },
  unavailable: { repeats: SAFE, health: "failing" },
  // The address works; there are too many callers.
  throttled: { repeats: SAFE, health: "working" },
  silent: { repeats: NONE, health: "failing" },
  broken: { repeats: NONE, health: "failing" },
  oversized: { repeats: NONE, health: "working" },
  crowded: { repeats: NONE, health: "unknown" },
};

/** Whether a call may be retried after this failure. */
export function mayRepeat(error: unknown, repeatable: Repeatable): error is LanceError {
  if (!(error instanceof LanceError) || error.fault === undefined) return false;
  return RULES[error.fault].repeats.includes(repeatable);
}

/** Returns what a failed attempt reveals about the address. */
export function healthOf(error: unknown): Health {
  if (!(error instanceof LanceError)) return "unknown";
  if (error.fault !== undefined) return RULES[error.fault].health;
  return error.is("Cancelled") || error.is("DeadlineExceeded") ? "unknown" : "working";
}

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
