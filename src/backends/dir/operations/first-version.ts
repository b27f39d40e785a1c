import { LanceError } from "../../../namespace/errors.ts";
import { removeTables } from "../batch/remove-tables.ts";
import type { DirContext } from "./context.ts";
import type { FoundTable } from "./lookup.ts";
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
  context: DirContext,
  { path }: Pick<FoundTable, "path">,
  file: Buffer,
): Promise<number> {
  const target = { store: context.store, root: context.store.keyOf(path) };
  return withStagedFile(context, file, (staged) => staged.create(target));
}

/**
 * Gives a declared table its data, and takes it back if the table was dropped meanwhile: the drop found no data.
 *
 * @throws LanceError ConcurrentModification, and what `write` throws
 */
export async function writeFirst(
  context: DirContext,
  { location, listed }: FoundTable,
  write: () => Promise<number>,
): Promise<number> {
  await context.layout.checkNoEscape(location);
  const version = await write();
  if (!listed || (await context.catalog.read()).ownerOf(location) !== undefined) return version;
  await removeTables(context, [location]);
  throw new LanceError("ConcurrentModification", "the table was dropped while it was written");
}
