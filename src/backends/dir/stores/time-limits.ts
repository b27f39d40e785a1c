/** How long one attempt of a read or a small write may take until its answer begins, in milliseconds. */
const SMALL_REQUEST_MS = 10_000;

/** How long the first attempt of a conditional write may take; it doubles with each one. */
const CONDITIONAL_WRITE_MS = 2_000;

/** The slowest link that is waited for, in bytes a millisecond. */
const BYTES_PER_MS = 250;

/** How long so many bytes may take on their way, in milliseconds. */
export function transferMs(bytes: number): number {
  return bytes / BYTES_PER_MS;
}

/** The time limits of the requests to one bucket, in milliseconds. */
export interface TimeLimits {
  /** For an attempt of a request without a long body. */
  readonly small: number;
  /** For an attempt to write so many bytes. */
  write(bytes: number): number;
  /** For an attempt to write so many bytes unless there is an object, by how many attempts there were. */
  conditionalWrite(bytes: number, attempts: number): number;
}

/** @param longest the limit that no other one exceeds, in milliseconds */
export function createTimeLimits(longest: number): TimeLimits {
  const atMost = (ms: number) => Math.min(longest, Math.ceil(ms));
  return {
    small: atMost(SMALL_REQUEST_MS),
    write: (bytes) => atMost(SMALL_REQUEST_MS + transferMs(bytes)),
    conditionalWrite: (bytes, attempts) => atMost(CONDITIONAL_WRITE_MS * 2 ** attempts + transferMs(bytes)),
  };
}
