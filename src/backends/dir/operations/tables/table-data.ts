import { setTimeout as sleep } from "node:timers/promises";
import { LanceError } from "../../../../namespace/errors.ts";
import type { CatalogContext } from "../../catalog/catalog-context.ts";
import { ownerOf } from "../../catalog/table-marks.ts";

/** How often the directory of a table is looked at that may just be made, and the pause between, in milliseconds. */
const LOOKS = 6;
const PAUSE_MS = 100;

/**
 * Whether a table has data; otherwise it is declared and gets its first.
 *
 * A declared table has a mark in its directory, which also stays when it has got data. So a table with neither has
 * lost its directory, and nobody can tell what was in it: writing to it would begin a new history under its name.
 *
 * @throws LanceError InvalidTableState for a table that has lost its directory; TableNotFound for one that was dropped
 */
export async function isWritten(context: CatalogContext, location: string): Promise<boolean> {
  const { layout } = context;
  for (let look = 1; ; look++) {
    const state = await layout.dataState(location);
    if (state !== "lost") return state === "written";
    if ((await ownerOf(context, location)) === undefined) {
      throw new LanceError("TableNotFound", "the table was dropped meanwhile");
    }
    if (look === LOOKS) throw lost();
    // In the root the row of a declared table comes before its mark.
    await sleep(PAUSE_MS);
  }
}

function lost(): LanceError {
  return new LanceError(
    "InvalidTableState",
    "the directory of the table is gone, and its data with it; drop the table, or create it anew",
  );
}
