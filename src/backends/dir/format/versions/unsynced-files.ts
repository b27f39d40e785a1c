import { type DatasetRef, versionsDirectory } from "../dataset.ts";
import { UnsyncedError } from "../local/local-errors.ts";
import { createDatasetMemory } from "./dataset-memory.ts";

/** The names of the files, and of the segments of indices, whose sync has failed. */
const failed = createDatasetMemory<ReadonlySet<string>>();

/**
 * Syncs files of a dataset, unless a sync of one of them has failed before: the system has discarded what it could not
 * write, and would report success (docs/adr/0032).
 *
 * @param names names of what is synced, each of which is used once
 * @throws UnsyncedError
 */
export async function syncUnlessFailed(
  dataset: DatasetRef,
  names: readonly string[],
  sync: () => Promise<void>,
): Promise<void> {
  const directory = versionsDirectory(dataset);
  const before = failed.get(dataset.store, directory);
  const lost = before && names.find((name) => before.has(name));
  if (lost !== undefined) throw new UnsyncedError(new Error(`an earlier sync of ${lost} has failed`));
  try {
    await sync();
  } catch (error) {
    if (error instanceof UnsyncedError) {
      const others = failed.get(dataset.store, directory) ?? [];
      failed.set(dataset.store, directory, new Set([...others, ...names]));
    }
    throw error;
  }
}
