import { callerKey } from "../../namespace/call/caller-key.ts";
import { LanceError } from "../../namespace/errors.ts";
import { createCallerQueue } from "../../runtime/collections.ts";
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
  /** Ends the wait, because the place is another caller's. */
  refuse(): void;
}

/** The call that enters, by which callers are told apart. */
type Entering = Parameters<typeof callerKey>[0];

/**
 * Admits a bounded number of calls at once; a bounded number waits. Callers take turns, and the calls of each enter in order of arrival. Where no
 * more may wait, the newest call of the caller with the most makes room for one that has fewer.
 */
export class Gate {
  readonly #limits: GateLimits;
  readonly #waiting = createCallerQueue<Waiter>();
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
   * @param call Default: that of a caller who has no name
   * @returns undefined if there was a free slot
   * @throws LanceError Throttling if too many wait, DeadlineExceeded after the limit; the signal's reason
   */
  enter(signal: Ending, limitMs = 0, call?: Entering): Promise<void> | undefined {
    if (this.#inside < this.#limits.places) {
      this.#inside += 1;
      return undefined;
    }
    const caller = call === undefined ? "" : callerKey(call);
    if (this.#waiting.size >= this.#limits.maxWaiting) {
      const newest = this.#waiting.newestBeside(caller);
      if (newest === undefined) return Promise.reject(tooMany(this.#name));
      newest.refuse();
    }
    return this.#wait(signal, limitMs, caller);
  }

  /** Takes a slot, which {@link leave} returns, even if none is free: for a call that has a slot, and returns it too early. */
  hold(): void {
    this.#inside += 1;
  }

  /** Returns a slot, to the call whose turn it is. */
  leave(): void {
    if (this.#waiting.size === 0 || this.#inside > this.#limits.places) {
      this.#inside -= 1;
      return;
    }
    this.#waiting.shift()?.enter();
  }

  #wait(signal: Ending, limitMs: number, caller: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = () => {
        this.#waiting.remove(waiter, caller);
        clearTimeout(timer);
        signal.removeEventListener("abort", abort);
      };
      const abort = () => {
        end();
        reject(signal.reason);
      };
      const waiter: Waiter = {
        enter() {
          end();
          resolve();
        },
        refuse: () => {
          end();
          reject(tooMany(this.#name));
        },
      };
      const expire = () => {
        end();
        reject(tooLate(this.#name));
      };
      const timer = limitMs === 0 ? undefined : setTimeout(expire, Math.max(0, limitMs));
      if (signal.aborted) return abort();
      signal.addEventListener("abort", abort);
      this.#waiting.push(waiter, caller);
    });
  }
}

function tooMany(name: string): LanceError {
  return new LanceError("Throttling", `too many calls are waiting for the ${name}`, {
    fault: "crowded",
    headers: { "retry-after": "1" },
  });
}

function tooLate(name: string): LanceError {
  return new LanceError("DeadlineExceeded", `the call waited too long for a slot at the ${name}`, {
    fault: "crowded",
  });
}
