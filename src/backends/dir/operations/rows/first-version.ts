import { LanceError } from "../../../../namespace/errors.ts";
import type { ChangeContext } from "../../batch/change-context.ts";
import { isRootDirectory } from "../../catalog/base-layout.ts";
import type { CatalogContext, TableContext } from "../../catalog/catalog-context.ts";
import { ownerOf, updateMark } from "../../catalog/table-marks.ts";
import type { FoundTable } from "../tables/lookup.ts";
import { withStagedFile } from "./staged-write.ts";

/**
 * Writes the first version of a table that is declared, from an Arrow IPC file. Of several who do so, one wins.
 *
 * The engine's own creation is not enough for that: it takes a dataset that appears while it writes for one that it
 * is to replace, and both writers are told that they created the table.
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
 * @throws LanceError ConcurrentModification when the table was dropped meanwhile, and what `write` throws
 */
export async function writeFirst(
  context: CatalogContext & Pick<ChangeContext, "journal">,
  { location, listed }: FoundTable,
  write: () => Promise<number>,
): Promise<number> {
  await context.layout.checkNoEscape(location);
  const version = await write();
  if (listed) await confirmWritten(context, location);
  return version;
}

/**
 * Makes sure that a declared table that has got its data is not one that was dropped before: the drop has removed the
 * directory with its mark, and the data has made another one.
 *
 * A directory with a mark was deregistered, after it had its data. Nothing is removed: what is there may be others', too.
 * The directory of a table that was dropped is hidden, and `gc` finds it.
 *
 * @throws LanceError ConcurrentModification
 */
export async function confirmWritten(
  context: CatalogContext & Pick<ChangeContext, "journal">,
  location: string,
): Promise<void> {
  const { journal, layout } = context;
  if ((await ownerOf(context, location)) !== undefined) {
    // It was hidden until its row was there, and whoever had made it has ended before it was shown.
    if (isRootDirectory(location) && (await layout.isDeregistered(location)))
      await updateMark(context, location);
    return;
  }
  if ((await layout.isMarked(location)) && !(await journal.removes(location))) return;
  await updateMark(context, location);
  throw new LanceError("ConcurrentModification", "the table was dropped while it was written");
}
