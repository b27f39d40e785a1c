import type { Layout } from "./base/layout.ts";
import type { CatalogContext } from "./catalog-context.ts";

/** Number of directories that are looked at together. */
export const PROBES = 64;

/**
 * Returns those of the given directories of the root, none of which has a row, that are tables without it. The
 * directory of a table that is being dropped may show for a moment, but does not count.
 */
export async function unlistedAmong(
  { layout, journal }: Pick<CatalogContext, "layout" | "journal">,
  locations: readonly string[],
): Promise<string[]> {
  const found = await shownAmong(layout, locations);
  if (found.length === 0) return found;
  // A drop makes its note before its table loses the row, and keeps it until the directory is gone. So what still shows
  // after a look at the notes is not being dropped.
  const removing = await journal.removing();
  return shownAmong(
    layout,
    found.filter((location) => !removing.has(location)),
  );
}

/** Returns the directories that implementations without a catalog treat as tables. */
async function shownAmong(
  layout: Pick<Layout, "isUnlistedTable">,
  locations: readonly string[],
): Promise<string[]> {
  const found: string[] = [];
  for (let at = 0; at < locations.length; at += PROBES) {
    const group = locations.slice(at, at + PROBES);
    const shows = await Promise.all(group.map((location) => layout.isUnlistedTable(location)));
    found.push(...group.filter((_, i) => shows[i]));
  }
  return found;
}
