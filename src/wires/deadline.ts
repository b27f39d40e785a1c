import { LanceError } from "../namespace/errors.ts";

/** The longest delay of a timer, in milliseconds: about 24 days. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Returns the time of a call in milliseconds: the one that it brings, or the default, which is 0 for no limit. */
export function timeAllowed(given: number | undefined, defaultMs: number): number | undefined {
  return given ?? (defaultMs > 0 ? defaultMs : undefined);
}

/** Returns the error of a call whose deadline has passed. */
export function deadlinePassed(): LanceError {
  return new LanceError("DeadlineExceeded", "the call's deadline has passed");
}

/** A call with a deadline. */
export interface Deadline {
  /** The call has ended. */
  clear(): void;
}

/** Ends a call with an error when its time is over. A time that exceeds the longest timer never ends it. */
export function startDeadline(milliseconds: number, end: (error: LanceError) => void): Deadline | undefined {
  if (milliseconds > LONGEST_TIMER_MS) return undefined;
  return new LateTimer(milliseconds, () => end(deadlinePassed()));
}

/** Time between two checks of the calls, in milliseconds. */
const CHECK_MS = 100;

/** Calls whose deadlines are too far away for a timer, in no order. */
const waiting: LateTimer[] = [];
let checking: NodeJS.Timeout | undefined;

/** Gives timers to the calls whose deadlines may pass before the next two checks. */
function check(): void {
  const now = performance.now();
  for (let at = waiting.length - 1; at >= 0; at -= 1) waiting[at]?.approach(now);
  checking = waiting.length === 0 ? undefined : setTimeout(check, CHECK_MS);
}

/** A timer that most calls never need: node's own costs each call more, and the calls that end in time start and stop it in vain. */
class LateTimer implements Deadline {
  readonly #at: number;
  readonly #end: () => void;
  /** Place among the waiting ones. Default: it has a timer, or is over. */
  #place = -1;
  #timer: NodeJS.Timeout | undefined;

  constructor(milliseconds: number, end: () => void) {
    const now = performance.now();
    this.#at = now + milliseconds;
    this.#end = end;
    this.#place = waiting.push(this) - 1;
    this.approach(now);
    if (this.#place >= 0 && checking === undefined) checking = setTimeout(check, CHECK_MS);
  }

  /** Takes a timer if the deadline is near. */
  approach(now: number): void {
    if (this.#at - now > 2 * CHECK_MS) return;
    this.#leave();
    this.#timer = setTimeout(this.#end, Math.max(0, this.#at - now));
  }

  clear(): void {
    this.#leave();
    clearTimeout(this.#timer);
  }

  #leave(): void {
    if (this.#place < 0) return;
    const last = waiting.pop() as LateTimer;
    if (last !== this) {
      waiting[this.#place] = last;
      last.#place = this.#place;
    }
    this.#place = -1;
  }
}
