import type { DescMethod } from "@bufbuild/protobuf";
import type { Call } from "../../namespace/call.ts";
import { LanceError } from "../../namespace/errors.ts";
import { isRead } from "../../namespace/reads.ts";

/** How a call may be repeated. */
export type Repeatable =
  /** It changes nothing and has a single answer, so that it may even run twice at once. */
  | "parallel"
  /** It may be made again after it has failed: it changes nothing, or has a key that tells that it is the same. */
  | "serial"
  /** It may be made again only if nothing of it was sent. */
  | "unsent";

/** The part of a call that resilience reads and writes. */
export type ResilientCall = Pick<Call, "signal" | "deadline" | "note">;

/**
 * Makes a call once.
 *
 * @param target where to
 * @param signal ends the attempt; its reason is what the attempt then throws
 * @throws LanceError whose `fault` says what failed in the upstream, if anything did
 */
export type Attempt<T, R> = (target: T, signal: AbortSignal, progress: Progress) => Promise<R>;

/** What an attempt is told of those before it, and what it tells. */
export interface Progress {
  /** How much of `totalMs` earlier attempts have taken, in milliseconds; 0 without such a limit. */
  readonly elapsedMs: number;
  /**
   * Tells that the upstream has the whole request, so that it is the upstream that is waited for. An attempt that ends
   * without having told that shows nothing of an upstream's silence.
   */
  onSent(): void;
}

/** One address of an upstream. */
export interface Endpoint<T> {
  /** What an attempt gets, for example a pool of connections. */
  readonly target: T;
  /** The name in the log, for example `10.0.0.1:2333`. */
  readonly name: string;
}

/** Makes calls of one upstream, more than once where that does no harm, and not at all where it does no good. */
export interface Resilience<T> {
  /**
   * Makes a call: at an address that works, and again when it fails in a way that allows it. What is decided on the
   * way is noted in the call.
   *
   * @throws what the last attempt threw; ServiceUnavailable with `retry-after` when all addresses fail so often that
   *   none is called; the reason of the call's signal
   */
  run<R>(call: ResilientCall, repeatable: Repeatable, attempt: Attempt<T, R>): Promise<R>;
  /** Takes other addresses; those whose targets stay keep their history, and calls under way go on. */
  replace(endpoints: readonly Endpoint<T>[]): void;
}

/** Calls one target, once. */
export function callOnce<T>(target: T): Pick<Resilience<T>, "run"> {
  return { run: ({ signal }, _, attempt) => attempt(target, signal, { elapsedMs: 0, onSent() {} }) };
}

/**
 * Returns how a method's call may be repeated.
 *
 * @param headers names and values in turn, as the upstream gets them
 */
export function repeatableOf(method: DescMethod, headers: readonly string[]): Repeatable {
  if (isRead(method)) return method.methodKind === "unary" ? "parallel" : "serial";
  // A streamed body can be read once. A unary message can be sent again when a key tells the upstream that it is a repetition.
  if (method.methodKind === "client_streaming") return "unsent";
  return headers.some((name, index) => index % 2 === 0 && name === "idempotency-key") ? "serial" : "unsent";
}

/**
 * Creates the error of a call that is not made because the upstream's circuit is open.
 *
 * @param ms when the next call may be made, in milliseconds from now
 */
export function refusal(call: ResilientCall, ms: number): LanceError {
  call.note("circuit_open");
  return new LanceError("ServiceUnavailable", "the upstream catalog fails and is not called for a while", {
    headers: { "retry-after": String(Math.max(1, Math.ceil(ms / 1000))) },
  });
}
