import type { ChangeContext } from "./change-context.ts";

/**
 * Removes the directories of tables that the catalog no longer has.
 *
 * The tables are gone already, so a failure to remove a directory is only logged.
 *
 * @returns whether none is left
 */
export async function removeTables(
  { layout, engine, log }: Pick<ChangeContext, "engine" | "layout" | "log">,
  locations: readonly string[],
): Promise<boolean> {
  let all = true;
  for (const location of locations) {
    try {
      engine.forget(layout.pathOf(location));
      await layout.remove(location);
    } catch (error) {
      all = false;
      log.warn({ err: error, location }, "the directory of a dropped table is left behind");
    }
  }
  return all;
}
