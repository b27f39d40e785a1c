import { isLanceError, type LanceError } from "../../../namespace/errors.ts";
import { checkNewName } from "../../../namespace/identifier.ts";
import { rootName } from "../catalog/base/location-names.ts";
import type { CatalogContext } from "../catalog/catalog-context.ts";
import type { Draft } from "../catalog/state/draft.ts";
import { unlistedAmong } from "../catalog/walk.ts";

/** A directory of the root that a migration examined. */
export interface Migrated {
  /** The table's name. */
  readonly table: string;
  readonly location: string;
  /** `registered`: it has a row now, or would get one; `skipped`: it cannot have one, for `reason`. */
  readonly outcome: "registered" | "skipped";
  readonly reason?: string;
}

/** Number of rows in a commit. */
const GROUP = 500;

/**
 * Adds rows to the manifest for the root's tables of the format's first version, which only have directories. Their
 * data does not move, and they stay visible to implementations that list directories.
 *
 * Repeating it changes nothing more. Each row is decided within its commit, so other writers may continue; a table
 * that gets its row from another writer meanwhile is skipped.
 *
 * @param dryRun whether to report what would be done, without writing
 */
export async function migrate(context: CatalogContext, dryRun: boolean): Promise<Migrated[]> {
  const { catalog, layout, journal } = context;
  const state = await catalog.read();
  const found: Migrated[] = [];
  const directories = (await layout.tableDirectories()).filter(
    (location) => state.ownerOf(location) === undefined,
  );
  for (const location of (await unlistedAmong(context, directories)).sort()) {
    const table = rootName(location);
    const reason = state.get(table) === undefined ? unfit(table) : "another object has its name";
    found.push(
      reason === undefined
        ? { table, location, outcome: "registered" }
        : { table, location, outcome: "skipped", reason },
    );
  }
  const chosen = found.filter(({ outcome }) => outcome === "registered");
  if (dryRun || chosen.length === 0) return found;
  const done = new Set<string>();
  for (let at = 0; at < chosen.length; at += GROUP) {
    const group = chosen.slice(at, at + GROUP);
    const registered = await catalog.mutate((draft) => {
      const free = group.filter(
        ({ table, location }) => draft.get(table) === undefined && draft.ownerOf(location) === undefined,
      );
      for (const { table, location } of free) {
        draft.put({ objectId: table, objectType: "table", location, properties: {} });
      }
      return free;
    });
    const gone: Migrated[] = [];
    // Before the directories, because a drop takes its note back once the directory is gone.
    const removing = await journal.removing();
    for (const each of registered) {
      if (!removing.has(each.location) && (await layout.exists(each.location))) done.add(each.table);
      else gone.push(each);
    }
    if (gone.length > 0) await catalog.mutate((draft) => takeBack(draft, gone));
  }
  return found.filter(({ table, outcome }) => outcome === "skipped" || done.has(table));
}

/** Removes the rows of tables whose directories were dropped meanwhile. */
function takeBack(draft: Draft, gone: readonly Migrated[]): void {
  for (const { table, location } of gone) {
    if (draft.get(table)?.location === location) draft.delete(table);
  }
}

/** Returns why a name cannot be a table's in the manifest. */
function unfit(table: string): string | undefined {
  try {
    checkNewName(table);
    return undefined;
  } catch (error) {
    if (isLanceError(error, "InvalidInput")) return (error as LanceError).message;
    throw error;
  }
}
