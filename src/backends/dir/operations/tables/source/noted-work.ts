import { LanceError } from "../../../../../namespace/errors.ts";
import { parseIdentifier } from "../../../../../namespace/identifier.ts";
import type { ChangeContext } from "../../../batch/change-context.ts";
import { resolveAbandoned } from "../../../batch/resolve.ts";
import type { FoundTable, WorkPlace } from "../../../data/table-source.ts";
import { findTable } from "../find-table.ts";
import { tableNotFound } from "../naming/object-names.ts";

/** Does work on a table of a directory, with a note for other processes; see {@link TableSource.duringWork}. */
export async function duringNotedWork<T>(
  context: ChangeContext,
  { id, location }: WorkPlace,
  work: (table: FoundTable) => Promise<T>,
): Promise<T> {
  const end = await context.work.begin(location);
  try {
    // A drop that did not see the note has taken the row by now.
    const state = await context.catalog.read();
    const owner = state.ownerOf(location);
    const table = await findTable(context, state, owner === undefined ? id : parseIdentifier(owner));
    if (table === undefined) throw tableNotFound(id);
    if (table.location !== location) throw new LanceError("TableNotFound", "the table was replaced");
    return await work(table);
  } finally {
    await end();
    await finishDrop(context, location);
  }
}

/** Removes the directory of a table that was dropped during the work. */
async function finishDrop(context: ChangeContext, location: string): Promise<void> {
  const { catalog, journal, log } = context;
  try {
    const isOwned = (await catalog.read()).ownerOf(location) !== undefined;
    if (!isOwned && (await journal.removing()).has(location)) await resolveAbandoned(context);
  } catch (error) {
    log.warn({ err: error, location }, "the drop of a table cannot be finished yet");
  }
}
