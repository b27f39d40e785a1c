import type { ChangeContext } from "../../batch/change-context.ts";
import { isRootDirectory } from "../../catalog/base/location-names.ts";
import type { CatalogContext, TableContext } from "../../catalog/catalog-context.ts";
import { ownerOf, updateMark } from "../../catalog/table-marks.ts";
import { afterChange } from "../../format/changes/after-change.ts";
import type { FoundTable } from "../tables/find-table.ts";
import { droppedMeanwhile, withStagedFile } from "./staged-write.ts";

/**
 * Writes the first version of a declared table from an Arrow IPC file. When several callers do so, exactly one wins.
 *
 * The engine's own creation does not guarantee that: when a dataset appears while it writes, it replaces that dataset,
 * and both writers learn that they created the table.
 *
 * @returns the version
 * @throws LanceError TableAlreadyExists
 */
export function createShared(
  context: TableContext,
  { path }: Pick<FoundTable, "path">,
  file: Buffer,
): Promise<number> {
  const target = { store: context.store, root: context.store.keyOf(path) };
  return withStagedFile(context, file, (staged) => staged.create(target));
}

/**
 * Gives a declared table its data.
 *
 * @throws LanceError ConcurrentModification when the table was dropped concurrently, and the errors of `write`
 */
export async function writeFirst(
  context: CatalogContext & Pick<ChangeContext, "journal">,
  { location, listed }: FoundTable,
  write: () => Promise<number>,
): Promise<number> {
  await context.layout.checkNoEscape(location);
  const version = await write();
  if (listed) await afterChange(() => confirmWritten(context, location), "ConcurrentModification");
  return version;
}

/**
 * Checks that a declared table was not dropped before it got its data: the drop would have removed the directory with
 * its mark, and the data would have created another one.
 *
 * A directory with a mark was deregistered after it got its data. Nothing is removed, because others may have written
 * there, too. The directory of a dropped table is hidden, and `gc` finds it.
 *
 * @throws LanceError ConcurrentModification
 */
export async function confirmWritten(
  context: CatalogContext & Pick<ChangeContext, "journal">,
  location: string,
): Promise<void> {
  const { journal, layout } = context;
  if ((await ownerOf(context, location)) !== undefined) {
    // The directory was hidden until its row existed, and its writer finished before it became visible.
    if (isRootDirectory(location) && (await layout.isDeregistered(location)))
      await updateMark(context, location);
    return;
  }
  if ((await layout.isMarked(location)) && !(await journal.removing()).has(location)) return;
  await updateMark(context, location);
  throw droppedMeanwhile();
}
