import type { DatasetRef } from "./dataset.ts";
import { versionHintKey } from "./dataset.ts";

/**
 * Remembers the newest version, as the engine does, on stores whose listings are not in order.
 *
 * It is a hint, not a fact. The engine looks upwards from it, and lists the directory if there is no such
 * version; so it may be too low, too high or missing. But the first version that is missing above it counts as
 * the end of the history, so no gap may be above it: whoever deletes versions has to set a lasting one first. The
 * engine lists the directory where a loss of power left an empty hint.
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
  /** Remembers a version; of several that come while one is written only the last is. */
  (version: bigint): void;
  /** Ends when nothing is written any more. */
  idle(): Promise<void>;
}

/** Creates a writer of hints for commits that do not wait for them: one that is missing costs only a search. */
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
