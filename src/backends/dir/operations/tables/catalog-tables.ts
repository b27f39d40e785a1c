import { LanceError } from "../../../../namespace/errors.ts";
import { type Identifier, parseIdentifier } from "../../../../namespace/identifier.ts";
import { inSlices } from "../../../../runtime/pace.ts";
import type { ChangeContext } from "../../batch/journal.ts";
import { resolveAbandoned } from "../../batch/resolve.ts";
import { isRootDirectory } from "../../catalog/base/location-names.ts";
import type { CatalogContext } from "../../catalog/catalog-context.ts";
import { checkGrowth } from "../../catalog/state/properties-size.ts";
import { type Row, sameProperties } from "../../catalog/state/row.ts";
import { ownerOf, updateMark } from "../../catalog/table-marks.ts";
import type { FoundTable, TableProperties, TableSource, WorkPlace } from "../../data/table-source.ts";
import { checkTableProperties } from "../properties.ts";
import { droppedMeanwhile } from "../rows/staged-write.ts";
import { findTable, listedTable, requireUnchanged } from "./find-table.ts";
import { objectIdOf, requireParent, tableNotFound } from "./naming/object-names.ts";

/** Creates the source of the tables that the manifest of a directory lists. */
export function createCatalogTables(context: ChangeContext): TableSource {
  const { catalog, layout, store } = context;
  function lastFound(id: Identifier): FoundTable | undefined {
    const row = catalog.known().get(objectIdOf(id));
    return row && listedTable(layout, id, row);
  }
  return {
    find: async (_call, id, isOpening) =>
      findTable(context, await catalog.read({ besideListing: isOpening === true }), id),
    // On a disk, a check takes less time than the opening would.
    ...(store.files === undefined && { lastFound }),
    isOwned: async ({ location }) => (await ownerOf(context, location)) !== undefined,
    hideRemains: ({ location }) => updateMark(context, location),
    confirmWritten: ({ location }) => confirmWritten(context, location),
    duringWork: (place, work) => duringNotedWork(context, place, work),
    dataState: ({ location }) => layout.dataState(location),
    checkNoEscape: ({ location }) => layout.checkNoEscape(location),
    stagingBaseOf: () => layout.baseKey,
    properties: createCatalogProperties(context),
  };
}

/** Creates the properties of a directory's tables, which are in their rows. */
function createCatalogProperties(context: CatalogContext): TableProperties {
  const { catalog } = context;
  return {
    maxBytes: catalog.limits.objectBytes,
    async checkAdded({ id }, added) {
      const state = await catalog.read();
      const table = await findTable(context, state, id);
      checkTableProperties(context, id, added, table?.properties);
      if (table === undefined) return;
      const row = withProperties(table, { ...table.properties, ...added });
      const changes = new Map([[row.objectId, row]]);
      await inSlices(checkGrowth(state, changes, state.propertiesBytes, catalog.limits));
    },
    async add(table, added) {
      const properties = { ...table.properties, ...added };
      if (sameProperties(table.properties, properties)) return properties;
      return catalog.mutate((draft) => {
        requireUnchanged(draft, table.id, table);
        requireParent(draft, table.id);
        const current = { ...(draft.get(objectIdOf(table.id)) ?? table).properties, ...added };
        draft.put(withProperties(table, current));
        return current;
      });
    },
  };
}

function withProperties({ id, location }: FoundTable, properties: Record<string, string>): Row {
  return { objectId: objectIdOf(id), objectType: "table", location, properties };
}

/** Does work on a table of a directory, with a note for other processes; see {@link TableSource.duringWork}. */
async function duringNotedWork<T>(
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

/**
 * Checks that a declared table was not dropped before it got its data: the drop would have removed the directory with
 * its mark, and the data would have created another one.
 *
 * A directory with a mark was deregistered after it got its data. Nothing is removed, because others may have written
 * there, too. The directory of a dropped table is hidden, and `gc` finds it.
 *
 * @throws LanceError ConcurrentModification
 */
export async function confirmWritten(
  context: CatalogContext & Pick<ChangeContext, "journal">,
  location: string,
): Promise<void> {
  const { journal, layout } = context;
  if ((await ownerOf(context, location)) !== undefined) {
    // The directory was hidden until its row existed, and its writer finished before it became visible.
    if (isRootDirectory(location) && (await layout.isDeregistered(location)))
      await updateMark(context, location);
    return;
  }
  if ((await layout.isMarked(location)) && !(await journal.removing()).has(location)) return;
  await updateMark(context, location);
  throw droppedMeanwhile();
}
