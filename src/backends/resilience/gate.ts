import { LanceError } from "../../namespace/errors.ts";

/** The bounds of a {@link Gate}. */
export interface GateLimits {
  /** The most calls that are inside at once. */
  readonly places: number;
  /** The most calls that wait for a place. */
  readonly maxWaiting: number;
  /** What the calls wait for, in errors. Default: the upstream catalog. */
  readonly name?: string;
}

interface Waiter {
  /** Hands over a place. */
  enter(): void;
}

/** Lets a bounded number of calls through at once and a bounded number wait, in the order in which they came. */
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

  /** How many calls wait. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /**
   * Takes a place, which {@link leave} gives back.
   *
   * @param limitMs how long the call may wait, in milliseconds; 0 for as long as its signal lets it
   * @returns undefined when there was a place at once
   * @throws LanceError Throttling when too many wait, DeadlineExceeded after the limit; the signal's reason
   */
  enter(signal: AbortSignal, limitMs = 0): Promise<void> | undefined {
    if (this.#inside < this.#limits.places) {
      this.#inside += 1;
      return undefined;
    }
    if (this.#waiting.size >= this.#limits.maxWaiting) return Promise.reject(tooMany(this.#name));
    return this.#wait(signal, limitMs);
  }

  /** Gives a place back, to the call that has waited longest. */
  leave(): void {
    const [next] = this.#waiting;
    if (next === undefined) this.#inside -= 1;
    else next.enter();
  }

  #wait(signal: AbortSignal, limitMs: number): Promise<void> {
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
