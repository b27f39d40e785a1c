import type { Identifier } from "../../../../../namespace/identifier.ts";
import { rootLocation } from "../../../catalog/base/location-names.ts";
import type { CatalogContext } from "../../../catalog/catalog-context.ts";
import type { CatalogView } from "../../../catalog/state/view.ts";

/**
 * Whether the root has a table of this name that has a directory but no row.
 *
 * The rows are read again after the directory, because the directory may belong to a table that was declared after the
 * first look. The directory of a table that is being dropped may show for a moment, but does not count: its note ends
 * after it has gone, so it is looked for once more after the notes.
 */
export async function isUnlistedTable(
  { layout, catalog, journal }: CatalogContext,
  state: CatalogView,
  id: Identifier,
): Promise<boolean> {
  if (!mayBeUnlisted(id)) return false;
  const location = rootLocation(id);
  if (state.ownerOf(location) !== undefined || !(await layout.isUnlistedTable(location))) return false;
  if ((await catalog.read()).ownerOf(location) !== undefined) return false;
  return !(await journal.removing()).has(location) && layout.isUnlistedTable(location);
}

/** Whether a directory alone can be a table of this name: only in the root, and only under the name of a directory. */
export function mayBeUnlisted(id: Identifier): boolean {
  return id.length === 1 && !/[/\\\0]/.test(id[0] ?? "");
}
