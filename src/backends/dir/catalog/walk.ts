import { type Identifier, joinIdentifier } from "../../../namespace/identifier.ts";
import { createPace } from "../../../runtime/pace.ts";
import type { Layout } from "./base/layout.ts";
import { rootName } from "./base/location-names.ts";
import type { Catalog } from "./catalog.ts";
import type { CatalogContext } from "./catalog-context.ts";

/** Number of names that are taken from the catalog at a time. */
const PAGE = 64;

/** Yields all tables that have rows in a catalog, in no particular order; changes may hide or repeat some. */
export async function* walkTables(
  { read }: Pick<Catalog, "read">,
  namespace: Identifier = [],
): AsyncGenerator<Identifier, void> {
  const objectId = namespace.length === 0 ? "" : joinIdentifier(namespace);
  const pace = createPace();
  for (const kind of ["table", "namespace"] as const) {
    for (let after = ""; ; ) {
      const names = (await read()).children(objectId, kind, after, PAGE);
      for (const name of names) {
        if (kind === "table") yield [...namespace, name];
        else yield* walkTables({ read }, [...namespace, name]);
      }
      const last = names.at(-1);
      if (last === undefined || names.length < PAGE) break;
      after = last;
      // On a disk, nothing in this loop has to wait.
      await pace.pauseIfDue();
    }
  }
}

/** Yields all tables of a catalog, also those of the root that have a directory but no row. */
export async function* walkAllTables(context: CatalogContext): AsyncGenerator<Identifier, void> {
  const { catalog, layout } = context;
  yield* walkTables(catalog);
  const directories = await layout.tableDirectories();
  for (let at = 0; at < directories.length; at += PROBES) {
    const state = await catalog.read();
    const unknown = directories
      .slice(at, at + PROBES)
      .filter((location) => !state.ownerOf(location) && !state.get(rootName(location)));
    for (const location of await unlistedAmong(context, unknown)) yield [rootName(location)];
  }
}

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
