import { LanceError } from "../../../../namespace/errors.ts";
import type { CatalogContext } from "../../catalog/catalog-context.ts";
import type { CatalogView } from "../../catalog/state/view.ts";

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

function ofAnotherTable(location: string): LanceError {
  return new LanceError("InvalidInput", `location ${JSON.stringify(location)} belongs to another table`);
}

function hasOther(locations: Iterable<string>, own: string | undefined): boolean {
  for (const location of locations) if (location !== own) return true;
  return false;
}
