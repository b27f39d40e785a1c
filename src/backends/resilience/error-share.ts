/** Duration of a half of the window, in milliseconds. */
const HALF_MS = 10_000;

/** Measures the recent failure rate of an address: over this half of a window and the previous one. */
export class ErrorShare {
  #began = 0;
  #calls = 0;
  #failures = 0;
  #callsBefore = 0;
  #failuresBefore = 0;

  add(failed: boolean): void {
    this.#move();
    this.#calls += 1;
    if (failed) this.#failures += 1;
  }

  /** Number of calls in the window. */
  get calls(): number {
    this.#move();
    return this.#calls + this.#callsBefore;
  }

  /** Failure rate, from 0 to 1. */
  get share(): number {
    const { calls } = this;
    return calls === 0 ? 0 : (this.#failures + this.#failuresBefore) / calls;
  }

  /** Forgets everything. */
  clear(): void {
    this.#calls = this.#failures = this.#callsBefore = this.#failuresBefore = 0;
  }

  #move(): void {
    const halves = Math.floor((performance.now() - this.#began) / HALF_MS);
    if (halves === 0) return;
    const recent = halves === 1;
    this.#callsBefore = recent ? this.#calls : 0;
    this.#failuresBefore = recent ? this.#failures : 0;
    this.#calls = this.#failures = 0;
    this.#began = recent ? this.#began + HALF_MS : performance.now();
  }
}
