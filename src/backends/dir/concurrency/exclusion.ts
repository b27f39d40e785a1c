import { createKeyedLocks, type KeyedLocks } from "./keyed-locks.ts";
import { createThreadGate, createThreadLocks } from "./thread-locks.ts";
import { createWriteGate, type WriteGate } from "./write-gate.ts";

/** Locks that keep changes of the same table apart within a process. */
export interface Exclusion {
  readonly gate: WriteGate;
  readonly histories: WriteGate;
  /** Returns the locks of a purpose. */
  readonly createLocks: (purpose: string) => KeyedLocks;
}

/**
 * Creates the exclusion of a catalog.
 *
 * @param shared name of a catalog that several workers of the process serve. Default: a single thread serves it
 */
export function createExclusion(shared?: string): Exclusion {
  if (shared !== undefined) {
    return {
      gate: createThreadGate(shared),
      histories: createThreadGate(`${shared} histories`),
      createLocks: (purpose) => createThreadLocks(`${shared} ${purpose}`),
    };
  }
  const ofPurpose = new Map<string, KeyedLocks>();
  return {
    gate: createWriteGate(),
    histories: createWriteGate(),
    createLocks(purpose) {
      const locks = ofPurpose.get(purpose) ?? createKeyedLocks();
      ofPurpose.set(purpose, locks);
      return locks;
    },
  };
}
