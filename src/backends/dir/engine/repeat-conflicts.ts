import { setTimeout as sleep } from "node:timers/promises";
import { isLanceError } from "../../../namespace/errors.ts";
import { engineCall } from "./failures/errors.ts";
import type { NativeTable } from "./native/native.ts";

/** Maximum number of attempts of a change. */
const ATTEMPTS = 10;

/** Longest pause before the second attempt, in milliseconds; it grows with each further one. */
const PAUSE_MS = 20;

/**
 * Runs work of the engine that commits, and repeats it on the newest version while others commit first, as if it had
 * been called later. The engine repeats most changes itself, but neither those of columns nor indices; a background
 * compaction must not make them fail.
 *
 * @param isWanted called before each further attempt
 * @throws LanceError the errors of the engine; ConcurrentModification after the last attempt
 */
export async function repeatConflicts<T>(
  table: Pick<NativeTable, "checkoutLatest">,
  work: () => Promise<T>,
  isWanted: () => boolean,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await engineCall(work);
    } catch (error) {
      const isLost = isLanceError(error, "ConcurrentModification");
      if (!isLost || attempt === ATTEMPTS || !isWanted()) throw error;
      await sleep(Math.random() * PAUSE_MS * attempt);
      await engineCall(() => table.checkoutLatest());
    }
  }
}
