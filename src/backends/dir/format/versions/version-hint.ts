import type { DatasetRef } from "../dataset.ts";
import { versionHintKey } from "../dataset.ts";

/**
 * Records the newest version, as the engine does, on stores whose listings are not in order.
 *
 * The record is only a hint. The engine searches upwards from it, and lists the directory if that version does not
 * exist, so the hint may be too low, too high or missing. But the first missing version above it ends the engine's
 * history, so there must be no gap above it: a deletion of versions must write a durable hint first. The engine lists
 * the directory if a loss of power left an empty hint.
 *
 * @param lasting whether it survives a loss of power. Default: false
 */
export async function writeVersionHint(
  dataset: DatasetRef,
  version: bigint,
  { lasting = false }: { readonly lasting?: boolean } = {},
): Promise<void> {
  const { store } = dataset;
  if (store.listsInOrder) return;
  const bytes = Buffer.from(`{"version":${version}}`);
  await (lasting ? store.put : store.putHint)(versionHintKey(dataset), bytes);
}

/** Writes hints in the background. */
export interface HintWriter {
  /** Records a version; of several that arrive during a write, only the last is written. */
  (version: bigint): void;
  /** Resolves when all writes have finished. */
  idle(): Promise<void>;
}

/** Creates a writer of hints for commits that do not wait for them: a missing hint costs only a search. */
export function createHintWriter(dataset: DatasetRef): HintWriter {
  let wanted: bigint | undefined;
  let writing: Promise<void> | undefined;
  async function write(): Promise<void> {
    for (let version = wanted; version !== undefined; version = wanted) {
      wanted = undefined;
      await writeVersionHint(dataset, version).catch(() => {});
    }
    writing = undefined;
  }
  const remember = (version: bigint) => {
    wanted = version;
    writing ??= write();
  };
  return Object.assign(remember, { idle: async () => writing });
}
