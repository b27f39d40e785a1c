import type { DataContext } from "../../data/data-context.ts";
import type { FoundTable } from "../../data/table-source.ts";
import { afterChange } from "../../format/changes/after-change.ts";
import { withStagedFile } from "./staged-write.ts";

/**
 * Writes the first version of a declared table from an Arrow IPC file. When several callers do so, exactly one wins.
 *
 * The engine's own creation does not guarantee that: when a dataset appears while it writes, it replaces that dataset,
 * and both writers learn that they created the table.
 *
 * @returns the version
 * @throws LanceError TableAlreadyExists
 */
export function createShared(context: DataContext, table: FoundTable, file: Buffer): Promise<number> {
  const target = { store: context.store, root: context.store.keyOf(table.path) };
  return withStagedFile(context, table, file, (staged) => staged.create(target));
}

/**
 * Gives a declared table its data.
 *
 * @throws LanceError ConcurrentModification when the table was dropped concurrently, and the errors of `write`
 */
export async function writeFirst(
  { tables }: Pick<DataContext, "tables">,
  table: FoundTable,
  write: () => Promise<number>,
): Promise<number> {
  await tables.checkNoEscape(table);
  const version = await write();
  if (table.listed) await afterChange(() => tables.confirmWritten(table), "ConcurrentModification");
  return version;
}
