import { LanceError } from "../../../namespace/errors.ts";

/** Limits on how long an upstream may make a call wait, in milliseconds; 0 for no limit. */
export interface TimeLimits {
  /** Until its answer starts, from the end of the request, and until it takes the next piece of a body. */
  readonly firstByteMs: number;
  /** Between two messages of an answer. */
  readonly idleMs: number;
}

/** Ends a call whose upstream makes it wait too long; the client's own pauses do not count. */
export class Patience {
  readonly #end: () => void;
  #timer: NodeJS.Timeout | undefined;
  /** Reason why the limit ended the call; undefined if it did not. */
  reason: LanceError | undefined;

  /** @param end ends the call */
  constructor(end: () => void) {
    this.#end = end;
  }

  /** Starts the limit in which the upstream must act, in milliseconds. */
  awaitFirst(ms: number): void {
    this.#await(ms, () => {
      const text = "the upstream catalog did not answer in time";
      return new LanceError("DeadlineExceeded", text, { fault: "silent" });
    });
  }

  /** Starts the limit for the next message of an answer that has started. */
  awaitNext(ms: number): void {
    this.#await(ms, () => {
      const text = "the upstream catalog stopped in the middle of its answer";
      return new LanceError("DeadlineExceeded", text, { fault: "broken" });
    });
  }

  /** Stops the limit; the upstream need not act for now. */
  rest(): void {
    clearTimeout(this.#timer);
  }

  #await(ms: number, reason: () => LanceError): void {
    clearTimeout(this.#timer);
    if (ms === 0) return;
    this.#timer = setTimeout(() => {
      this.reason = reason();
      this.#end();
    }, ms);
  }
}
