import { formatFieldPath } from "../../../../arrow/field-path.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { NativeTable } from "../../engine/native/native.ts";
import { findUnsafe } from "../../engine/workarounds/misread-lists/find-misread.ts";
import { renameIndex } from "../../format/changes/index-entries.ts";
import { beginIndex, type IndexBeginning } from "../../format/changes/index-seed.ts";
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
 *   indices stay as they are; Unsupported for a table whose rows the engine should not write again
 */
export async function growIndex(
  native: NativeTable,
  dataset: DatasetRef,
  index: IndexBeginning & { readonly replace: boolean },
  signal: AbortSignal,
): Promise<void> {
  await refuseUnsafe(dataset);
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
export const nameWhileGrowing = ({ name }: Pick<IndexBeginning, "name">) => `__lance_gateway_growing_${name}`;

/** Refuses to have the engine compact fragments whose rows it could misread: it would write wrong values for good. */
async function refuseUnsafe(dataset: DatasetRef): Promise<void> {
  const path = await findUnsafe(dataset, (await readVersion(dataset)).manifest);
  if (path === undefined) return;
  throw new LanceError(
    "Unsupported",
    `the engine would write the rows of the table again to build an index of this type, and could lose values of ${formatFieldPath(path)}; build a BTREE, BITMAP or FTS index instead ("Lists inside of structs" in docs/limits.md)`,
  );
}

/** @throws LanceError InvalidInput, if the index does not cover all rows */
async function checkComplete(dataset: DatasetRef, { name, column }: IndexBeginning): Promise<void> {
  const found = (await readIndices(await readVersion(dataset))).find((index) => index.name === name);
  if (found?.indexedRows === found?.rows) return;
  throw new LanceError(
    "InvalidInput",
    `the engine cannot index the values of column ${JSON.stringify(column)}`,
  );
}
