/** Memory for the rows of a catalog. */
export interface Memory {
  /** Number of bytes that have been taken, including what is unused by now. */
  readonly taken: number;
  /** Returns new memory, in which everything is 0. */
  take(bytes: number): ArrayBufferLike;
}

/**
 * Creates memory.
 *
 * @param isShared whether other threads may read it. The collector counts shared memory for no thread, so only
 *   workers use it.
 */
export function createMemory(isShared = false): Memory {
  let taken = 0;
  return {
    get taken() {
      return taken;
    },
    take(bytes) {
      taken += bytes;
      return isShared ? new SharedArrayBuffer(bytes) : new ArrayBuffer(bytes);
    },
  };
}
