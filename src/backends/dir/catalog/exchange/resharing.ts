import type { CatalogState } from "../state/state.ts";
import type { SharedVersion } from "./messages.ts";

/** Memory of its own that a worker's state may take: a fixed part, and a part for each row. In bytes. */
const FIXED_BYTES = 2 * 1024 * 1024;
const BYTES_PER_ROW = 8;

/** Shortest time between two requests, in milliseconds. */
const PAUSE_MS = 1_000;

/** Keeps the memory of a worker's state small. */
export interface Resharing {
  /** Looks at the state, which has changed. */
  note(): void;
}

/**
 * Creates the resharing of a worker: it takes over the memory of the committing worker whenever its own state, which
 * copies what it changes, has taken too much.
 *
 * @param share asks the committing worker for its newest version
 * @param replace takes over a version, if that is possible
 */
export function createResharing(
  known: () => CatalogState,
  share: () => Promise<SharedVersion | undefined>,
  replace: (shared: SharedVersion) => void,
): Resharing {
  let isAsking = false;
  let askedAt = Number.NEGATIVE_INFINITY;

  async function ask(): Promise<void> {
    const shared = await share();
    if (shared !== undefined) replace(shared);
    isAsking = false;
  }
  return {
    note() {
      const { ownBytes, size } = known();
      const now = performance.now();
      if (isAsking || ownBytes <= FIXED_BYTES + size * BYTES_PER_ROW || now - askedAt < PAUSE_MS) return;
      isAsking = true;
      askedAt = now;
      void ask();
    },
  };
}
