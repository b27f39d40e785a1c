import { LanceError } from "../../namespace/errors.ts";

/** How long an upstream may let a call wait, in milliseconds; 0 for no limit. */
export interface TimeLimits {
  /** For its answer to begin, from when the request is with it, and for it to take the next piece of a body. */
  readonly firstByteMs: number;
  /** Between two messages of an answer. */
  readonly idleMs: number;
}

/** Ends a call whose upstream lets it wait for too long; the time of the client's own pauses does not count. */
export class Patience {
  readonly #end: () => void;
  #timer: NodeJS.Timeout | undefined;
  /** Why the call was ended here; undefined if it was not. */
  reason: LanceError | undefined;

  /** @param end ends the call */
  constructor(end: () => void) {
    this.#end = end;
  }

  /** From now on the upstream has to do something within so many milliseconds. */
  awaitFirst(ms: number): void {
    this.#await(ms, () => {
      const text = "the upstream catalog did not answer in time";
      return new LanceError("DeadlineExceeded", text, { fault: "silent" });
    });
  }

  /** The same for an answer that has begun. */
  awaitNext(ms: number): void {
    this.#await(ms, () => {
      const text = "the upstream catalog stopped in the middle of its answer";
      return new LanceError("DeadlineExceeded", text, { fault: "broken" });
    });
  }

  /** It need not do anything for now. */
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
