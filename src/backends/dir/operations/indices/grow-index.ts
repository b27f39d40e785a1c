import { LanceError } from "../../../../namespace/errors.ts";
import type { NativeTable } from "../../engine/native.ts";
import type { DatasetRef } from "../../format/dataset.ts";
import { readIndices } from "../../format/index-section.ts";
import { beginIndex, type IndexSeed } from "../../format/index-seed.ts";
import { readVersion } from "../../format/version-files.ts";

/** An index of a type that the engine brings up to date, but does not begin. */
export interface GrowingIndex {
  readonly name: string;
  /** Path of the field. */
  readonly column: string;
  readonly seed: IndexSeed;
}

/** Versions before 1970 are removed, so none is. */
const KEEP_ALL_VERSIONS = 0;

/**
 * Begins an index, and lets the engine add all rows to it. The engine does so in its upkeep of the whole table, which
 * also compacts small fragments.
 *
 * @param native a handle of the dataset, which moves to its newest version
 * @throws LanceError InvalidInput, if the engine cannot add the values of the column; the index is removed then
 */
export async function growIndex(
  native: NativeTable,
  dataset: DatasetRef,
  index: GrowingIndex,
  signal: AbortSignal,
): Promise<void> {
  await beginIndex(dataset, index, signal);
  await native.checkoutLatest();
  let failure: unknown;
  try {
    await native.optimize(KEEP_ALL_VERSIONS);
  } catch (error) {
    failure = error;
  }
  const found = (await readIndices(await readVersion(dataset))).find(({ name }) => name === index.name);
  if (failure === undefined && found?.indexedRows === found?.rows) return;
  await native.dropIndex(index.name);
  throw (
    failure ??
    new LanceError(
      "InvalidInput",
      `the engine cannot index the values of column ${JSON.stringify(index.column)}`,
    )
  );
}
