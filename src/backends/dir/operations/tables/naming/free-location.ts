import { isLanceError, LanceError } from "../../../../../namespace/errors.ts";
import type { CatalogContext, TableContext } from "../../../catalog/catalog-context.ts";
import type { CatalogView } from "../../../catalog/state/view.ts";
import { otherFiles } from "../../../format/table-files.ts";
import { readVersion } from "../../../format/versions/version-files.ts";

/**
 * Refuses a location that contains, equals or is inside of another table's directory: dropping one would harm the
 * other.
 *
 * @throws LanceError InvalidInput
 */
export function checkFree(view: CatalogView, location: string, own?: string): void {
  if (!isFree(view, location, own)) throw ofAnotherTable(location);
}

/** Whether no row has a location, or one that contains it or is inside of it. */
export function isFree(view: CatalogView, location: string, own?: string): boolean {
  const isAround = around(location).some((other) => other !== own && view.ownerOf(other) !== undefined);
  return !isAround && !hasOther(view.locationsInside(location), own);
}

/** Returns a location and the directories that contain it. */
function around(location: string): string[] {
  const parts = location.split("/");
  return parts.map((_, i) => parts.slice(0, i + 1).join("/"));
}

/**
 * Refuses a location inside of a table's directory, also of one without a row, which {@link checkFree} does not see.
 *
 * @throws LanceError InvalidInput
 */
export async function checkOutsideOfTables({ layout }: CatalogContext, location: string): Promise<void> {
  for (const directory of around(location).slice(0, -1))
    if ((await layout.dataState(directory)) !== "lost") throw ofAnotherTable(location);
}

/** Maximum number of files that a table to be registered may have in its directory beside its own. */
const MAX_OTHER_FILES = 10_000;

/** A version of a dataset, or the mark of a declared table. */
const OF_TABLE = /\/(?:_versions\/[^/]*\.manifest|\.lance-reserved)$/;

/**
 * Refuses a location unless a readable dataset or a declared table is there that contains no other one.
 *
 * @throws LanceError InvalidInput; Unsupported for a table of a newer format
 */
export async function checkHasOneTable(
  { layout, store }: Pick<TableContext, "layout" | "store">,
  location: string,
): Promise<void> {
  const refused = (reason: string, cause?: unknown) =>
    new LanceError("InvalidInput", `location ${JSON.stringify(location)} ${reason}`, { cause });
  const state = await layout.dataState(location);
  if (state === "lost") throw refused("does not contain a Lance table");
  const root = store.keyOf(layout.pathOf(location));
  if (state === "written")
    await readVersion({ store, root }).catch((error: unknown) => {
      if (isLanceError(error, "Unsupported")) throw error;
      throw refused("does not contain a readable Lance table", error);
    });
  let count = 0;
  for await (const path of otherFiles(store, root)) {
    if (OF_TABLE.test(path))
      throw refused(`contains another table in ${JSON.stringify(path.replace(OF_TABLE, ""))}`);
    if (++count > MAX_OTHER_FILES)
      throw refused(`contains more than ${MAX_OTHER_FILES} files that do not belong to the table`);
  }
}

function ofAnotherTable(location: string): LanceError {
  return new LanceError("InvalidInput", `location ${JSON.stringify(location)} belongs to another table`);
}

function hasOther(locations: Iterable<string>, own: string | undefined): boolean {
  for (const location of locations) if (location !== own) return true;
  return false;
}
