import { LanceError } from "../../../../namespace/errors.ts";
import { type Identifier, joinIdentifier, parseIdentifier } from "../../../../namespace/identifier.ts";
import type { ChangeContext } from "../../batch/change-context.ts";
import { resolveAbandoned } from "../../batch/resolve.ts";
import { type FoundTable, findTable } from "./find-table.ts";
import { tableNotFound } from "./naming/object-names.ts";

/** The table of long work. */
export interface WorkPlace {
  /** The name when the work was planned; the table may have another one by now. */
  readonly id: Identifier;
  /** The location when the work was planned, which distinguishes the table from a later one of its name. */
  readonly location: string;
}

/**
 * Does work on a table that takes long and commits. A drop of the table does not wait for the work, but its directory
 * stays until the work ends, also in other processes: otherwise the engine would commit to a new table that was created
 * in the same place. A deletion of the table's newest versions waits for it.
 *
 * @throws LanceError TableNotFound, if the table was dropped or replaced; the errors of `work`
 */
export async function duringWork<T>(
  context: ChangeContext,
  place: WorkPlace,
  work: (table: FoundTable) => Promise<T>,
): Promise<T> {
  return context.histories.pass(joinIdentifier(place.id), () => noted(context, place, work));
}

async function noted<T>(
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
