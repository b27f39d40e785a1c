import type { NativeTable } from "./native/native.ts";

/** Asks the engine to prune no version: none is older than 1970. */
export const NO_VERSION = 0;

/** Says that a handle does not follow the newest version. */
const IS_PINNED = /when a specific version is checked out/;

/**
 * Has the engine join small fragments and remove deleted rows from the files, and leaves indices and versions alone. Its
 * cost does not depend on the number of versions.
 *
 * The engine has no call for this: `optimize` compacts, then reads the manifests of all versions to prune some, and then
 * brings the indices up to date. Before each of these it refuses a handle that does not follow the newest version. A
 * handle that stops to follow while the engine compacts therefore ends the call with the compaction. If it stops too
 * late, the engine does the rest, too; if too early, which happens on a busy machine, the engine does nothing.
 */
export async function compactOnly(table: Pick<NativeTable, "checkoutCurrent">): Promise<void> {
  const own = await table.checkoutCurrent();
  try {
    await own.checkoutLatest();
    // A handle cannot be closed while a call of it runs.
    const [compacted] = await Promise.allSettled([
      own.optimize(NO_VERSION),
      own.version().then((version) => own.checkout(version)),
    ]);
    if (compacted.status === "rejected" && !isPinned(compacted.reason)) throw compacted.reason;
  } finally {
    own.close();
  }
}

function isPinned(error: unknown): boolean {
  return error instanceof Error && IS_PINNED.test(error.message);
}
