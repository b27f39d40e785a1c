import { LanceError } from "../../namespace/errors.ts";
import type { Ending } from "../../runtime/late-signal.ts";

/** Bounds of a {@link Gate}. */
export interface GateLimits {
  /** Maximum number of calls inside at once. */
  readonly places: number;
  /** Maximum number of calls that wait for a slot. */
  readonly maxWaiting: number;
  /** Name, in errors, of the resource that calls wait for. Default: the upstream catalog. */
  readonly name?: string;
}

interface Waiter {
  /** Hands over a slot. */
  enter(): void;
}

/** Admits a bounded number of calls at once; a bounded number waits, in order of arrival. */
export class Gate {
  readonly #limits: GateLimits;
  readonly #waiting = new Set<Waiter>();
  #inside = 0;

  constructor(limits: GateLimits) {
    this.#limits = limits;
  }

  get #name(): string {
    return this.#limits.name ?? "upstream catalog";
  }

  /** Number of waiting calls. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /**
   * Takes a slot, which {@link leave} returns.
   *
   * @param limitMs how long the call may wait, in milliseconds; 0 for as long as its signal allows
   * @returns undefined if there was a free slot
   * @throws LanceError Throttling if too many wait, DeadlineExceeded after the limit; the signal's reason
   */
  enter(signal: Ending, limitMs = 0): Promise<void> | undefined {
    if (this.#inside < this.#limits.places) {
      this.#inside += 1;
      return undefined;
    }
    if (this.#waiting.size >= this.#limits.maxWaiting) return Promise.reject(tooMany(this.#name));
    return this.#wait(signal, limitMs);
  }

  /** Takes a slot, which {@link leave} returns, even if none is free: for a call that has a slot, and returns it too early. */
  hold(): void {
    this.#inside += 1;
  }

  /** Returns a slot, to the call that has waited longest. */
  leave(): void {
    if (this.#waiting.size === 0 || this.#inside > this.#limits.places) {
      this.#inside -= 1;
      return;
    }
    const [next] = this.#waiting;
    next?.enter();
  }

  #wait(signal: Ending, limitMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = () => {
        this.#waiting.delete(waiter);
        clearTimeout(timer);
        signal.removeEventListener("abort", abort);
      };
      const abort = () => {
        end();
        reject(signal.reason);
      };
      const waiter = {
        enter() {
          end();
          resolve();
        },
      };
      const expire = () => {
        end();
        reject(tooLate(this.#name));
      };
      const timer = limitMs === 0 ? undefined : setTimeout(expire, Math.max(0, limitMs));
      if (signal.aborted) return abort();
      signal.addEventListener("abort", abort);
      this.#waiting.add(waiter);
    });
  }
}

function tooMany(name: string): LanceError {
  return new LanceError("Throttling", `too many calls wait for the ${name}`, {
    fault: "crowded",
    headers: { "retry-after": "1" },
  });
}

function tooLate(name: string): LanceError {
  return new LanceError("DeadlineExceeded", `the call waited too long for its turn at the ${name}`, {
    fault: "crowded",
  });
}
