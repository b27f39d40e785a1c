import { monotonicNow } from "../../../runtime/time/monotonic.ts";
import { Budget } from "../../resilience/budget.ts";
import type { Gate } from "../../resilience/gate.ts";

/** Number of resets at once, and in each second: less than Node (1,000 and 33) and this gateway (100 and 33) allow at worst. */
const AT_ONCE = 100;
const PER_SECOND = 30;

/** Early resets that each call earns that ends by itself: Envoy closes a connection on which they are half of the calls. */
const EARLY_SHARE = 0.5;

/** Age, in milliseconds, at which the reset of an unanswered call is no longer early for Envoy. */
const EARLY_MS = 2_000;

/** Pause until the next attempt to reset calls that wait, in milliseconds. */
const PAUSE_MS = 100;

/** A cancelled call that waits for its reset. */
export interface CancelledCall {
  reset(): void;
}

/** Decides when calls may be reset on a connection, which the peer closes if there are too many (docs/adr/0022). */
export class ResetPace {
  readonly #slots: Pick<Gate, "hold" | "leave">;
  readonly #all = new Budget(0, { perSecond: PER_SECOND, first: AT_ONCE });
  readonly #early = new Budget(EARLY_SHARE, { perSecond: 0, first: AT_ONCE });
  /** Times since which calls wait, the longest first. */
  readonly #waiting = new Map<CancelledCall, number>();
  #timer: NodeJS.Timeout | undefined;

  /** @param slots slots of the calls, which they keep while they wait */
  constructor(slots: Pick<Gate, "hold" | "leave">) {
    this.#slots = slots;
  }

  /**
   * Whether a call may be reset now, which counts as a reset.
   *
   * @param isEarly whether its answer has not started
   */
  mayReset(isEarly: boolean): boolean {
    return (!isEarly || this.#early.take()) && this.#all.take();
  }

  /** Resets a call as soon as that is allowed, unless it {@link end}s before. */
  resetLater(call: CancelledCall): void {
    this.#slots.hold();
    this.#waiting.set(call, monotonicNow());
    this.#timer ??= setTimeout(this.#resetDue, EARLY_MS).unref();
  }

  /** Notes that a call has ended by itself. */
  end(call: CancelledCall): void {
    this.#early.earn();
    this.#forget(call);
  }

  readonly #resetDue = (): void => {
    const due = monotonicNow() - EARLY_MS;
    for (const [call, since] of this.#waiting) {
      if (since > due || !this.#all.take()) break;
      this.#forget(call);
      call.reset();
    }
    const [oldest] = this.#waiting.values();
    this.#timer =
      oldest === undefined ? undefined : setTimeout(this.#resetDue, Math.max(PAUSE_MS, oldest - due)).unref();
  };

  #forget(call: CancelledCall): void {
    if (this.#waiting.delete(call)) this.#slots.leave();
  }
}
