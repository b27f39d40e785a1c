/** Longest time until the answer to a read or a small write begins, in milliseconds. */
const SMALL_REQUEST_MS = 10_000;

/** Longest duration of the first attempt of a conditional write, in milliseconds; it doubles with each one. */
const CONDITIONAL_WRITE_MS = 2_000;

/** Rate of the slowest supported link, in bytes per millisecond. */
const BYTES_PER_MS = 250;

/** Returns the longest transfer time of a number of bytes, in milliseconds. */
export function transferMs(bytes: number): number {
  return bytes / BYTES_PER_MS;
}

/** Returns the error of a request that exceeded its limit. */
export function lateError(): Error {
  return Object.assign(new Error("late"), { code: "ETIMEDOUT" });
}

/** Time limits of the requests to a bucket, in milliseconds. */
export interface TimeLimits {
  /** Limit that bounds all others, and that on a wait for the next bytes of a body. */
  readonly longest: number;
  /** Limit on an attempt of a request without a long body. */
  readonly small: number;
  /** Returns the limit on an attempt to write a number of bytes. */
  write(bytes: number): number;
  /** Returns the limit on an attempt of a conditional write, by its bytes and the number of earlier attempts. */
  conditionalWrite(bytes: number, attempts: number): number;
}

/** @param longest the limit that bounds all others, in milliseconds */
export function createTimeLimits(longest: number): TimeLimits {
  const atMost = (ms: number) => Math.min(longest, Math.ceil(ms));
  return {
    longest,
    small: atMost(SMALL_REQUEST_MS),
    write: (bytes) => atMost(SMALL_REQUEST_MS + transferMs(bytes)),
    conditionalWrite: (bytes, attempts) => atMost(CONDITIONAL_WRITE_MS * 2 ** attempts + transferMs(bytes)),
  };
}
