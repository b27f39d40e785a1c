import type { DatasetRef } from "./layout.ts";
import { versionHintKey } from "./layout.ts";

/**
 * Remembers the newest version, as the engine does, on stores whose listings are not in order.
 *
 * It is a hint, not a fact. The engine looks upwards from it, and lists the directory if there is no such
 * version; so it may be too low, too high or missing. But the first version that is missing above it counts as
 * the end of the history, so no gap may be above it: whoever deletes versions has to set it first.
 */
export async function writeVersionHint(dataset: DatasetRef, version: bigint): Promise<void> {
  if (dataset.store.listsInOrder) return;
  await dataset.store.put(versionHintKey(dataset), Buffer.from(`{"version":${version}}`));
}
