import { setTimeout as sleep } from "node:timers/promises";
import { LanceError } from "../../../../namespace/errors.ts";
import type { DataContext } from "../../data/data-context.ts";
import type { FoundTable } from "../../data/table-source.ts";

/**
 * Number of looks at the directory of a table that may just be created, and the pause between them, in milliseconds.
 */
const LOOKS = 6;
const PAUSE_MS = 100;

/**
 * Whether a table has data; a declared table has none yet.
 *
 * A declared table has a mark in its directory, which stays when the table gets data. A table with neither mark nor
 * data has lost its directory, and its former content is unknown: a write would begin a new history under its name.
 *
 * @throws LanceError InvalidTableState for a table that has lost its directory; TableNotFound for one that was dropped
 */
export async function isWritten(
  { tables }: Pick<DataContext, "tables">,
  table: FoundTable,
): Promise<boolean> {
  for (let look = 1; ; look++) {
    const state = await tables.dataState(table);
    if (state !== "lost") return state === "written";
    if (!(await tables.isOwned(table))) {
      throw new LanceError("TableNotFound", "the table was dropped concurrently");
    }
    if (look === LOOKS) throw lost();
    // A declarer whose claim was taken away, because its row was late, puts the mark again after the row.
    await sleep(PAUSE_MS);
  }
}

function lost(): LanceError {
  return new LanceError(
    "InvalidTableState",
    "the directory of the table is gone, and its data with it; drop the table, or create it anew",
  );
}
