import { LanceError } from "../../../../namespace/errors.ts";
import type { NativeTable } from "../../engine/native.ts";
import { beginIndex, type IndexBeginning } from "../../format/changes/index-seed.ts";
import { renameIndex } from "../../format/changes/rename-index.ts";
import type { DatasetRef } from "../../format/dataset.ts";
import { readIndices } from "../../format/files/index-section.ts";
import { readVersion } from "../../format/versions/version-files.ts";

/** Versions before 1970 are removed, so none is. */
const KEEP_ALL_VERSIONS = 0;

/**
 * Begins an index, and lets the engine add all rows to it. The engine does so in its upkeep of the whole table, which
 * also compacts small fragments. The index gets its name when it is complete.
 *
 * @param native a handle of the dataset, which moves to its newest version
 * @param index `replace`: whether it replaces the indices of its name
 * @throws LanceError InvalidInput, if the engine cannot add the values of the column, TableIndexAlreadyExists; the table's
 *   indices stay as they are
 */
export async function growIndex(
  native: NativeTable,
  dataset: DatasetRef,
  index: IndexBeginning & { readonly replace: boolean },
  signal: AbortSignal,
): Promise<void> {
  const name = nameWhileGrowing(index);
  await beginIndex(dataset, { ...index, name }, signal);
  try {
    await native.checkoutLatest();
    await native.optimize(KEEP_ALL_VERSIONS);
    await checkComplete(dataset, { ...index, name });
    await renameIndex(dataset, { from: name, to: index.name, replace: index.replace }, signal);
  } catch (error) {
    await native.checkoutLatest();
    // The next build of this name replaces what stays if this fails.
    await native.dropIndex(name).catch(() => {});
    throw error;
  }
  await native.checkoutLatest();
}

/** Lists hide the name. The next build of an index replaces what an interrupted one leaves under it. */
const nameWhileGrowing = ({ name }: IndexBeginning) => `__lance_gateway_growing_${name}`;

/** @throws LanceError InvalidInput, if the index does not cover all rows */
async function checkComplete(dataset: DatasetRef, { name, column }: IndexBeginning): Promise<void> {
  const found = (await readIndices(await readVersion(dataset))).find((index) => index.name === name);
  if (found?.indexedRows === found?.rows) return;
  throw new LanceError(
    "InvalidInput",
    `the engine cannot index the values of column ${JSON.stringify(column)}`,
  );
}
