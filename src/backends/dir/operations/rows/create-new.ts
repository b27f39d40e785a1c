import { LanceError } from "../../../../namespace/errors.ts";
import type { Identifier } from "../../../../namespace/identifier.ts";
import type { ChangeContext } from "../../batch/journal.ts";
import { isRefusal } from "../../batch/run.ts";
import type { TableContext } from "../../catalog/catalog-context.ts";
import { afterChange } from "../../format/changes/after-change.ts";
import { newStagingKey } from "../../format/table-files.ts";
import { confirmWritten } from "../tables/catalog-tables.ts";
import { checkNewIdentifier } from "../tables/naming/object-names.ts";
import { planClaim } from "../tables/naming/plan-claim.ts";
import { type Claim, takeName } from "../tables/naming/take-name.ts";
import type { ReceivedRows } from "./received-rows.ts";
import { publishStaged, removeStaged } from "./staged-write.ts";

/** A new table. */
export interface NewTable {
  readonly path: string;
  readonly version: number;
}

/**
 * Creates a table that does not exist: its data, and its row, which only one of several callers gets.
 *
 * In a location that no other process can know, the data is written first, so that no reader sees part of the table,
 * and no other implementation takes it for declared and writes its own data over it. The directory of a root table
 * would be visible without its row. There the row is written first, which declares the table, and the data follows from
 * its staging directory.
 *
 * @throws LanceError TableAlreadyExists, NamespaceNotFound; ConcurrentModification, when the table was dropped
 *   meanwhile; OutcomeUnknown when the storage failed after the name was taken
 */
export async function createNew(
  context: ChangeContext,
  id: Identifier,
  rows: ReceivedRows,
  properties: Readonly<Record<string, string>>,
): Promise<NewTable> {
  await checkNewIdentifier(context, id);
  const claim = await planClaim(context, context.catalog.read, id, properties);
  return claim.isPrivate ? createApart(context, claim, rows) : createInRoot(context, claim, rows);
}

/**
 * Creates a table at the private location of a claim, where all of it appears at once.
 *
 * @param data writes a new dataset to a location to which no other process writes
 */
export async function createApart(
  context: ChangeContext,
  { location, apply }: Claim,
  data: Pick<ReceivedRows, "stage">,
): Promise<NewTable> {
  const { catalog, layout } = context;
  const path = layout.pathOf(location);
  let isAsked = false;
  try {
    const version = await writeApart(context, path, data);
    isAsked = true;
    await catalog.mutate(apply);
    return { path, version };
  } catch (error) {
    // When the storage did not acknowledge, the row may exist, and the table may have been renamed by now.
    if (!isAsked || isRefusal(error)) await removeTables(context, [location]);
    throw error;
  }
}

/** Writes the data to a location of its own; on a disk all of it appears there at once. */
async function writeApart(
  { layout, store }: TableContext,
  path: string,
  data: Pick<ReceivedRows, "stage">,
): Promise<number> {
  if (store.files === undefined) return data.stage(path);
  const staging = newStagingKey(layout.baseKey);
  try {
    const version = await data.stage(store.uriOf(staging));
    await store.files.syncTree(staging);
    if (await store.files.moveDirectory(staging, store.keyOf(path))) return version;
    throw new LanceError("TableAlreadyExists", "the table already exists");
  } finally {
    await removeStaged(store, staging);
  }
}

async function createInRoot(
  context: TableContext & ChangeContext,
  claim: Claim,
  rows: ReceivedRows,
): Promise<NewTable> {
  const { layout, store } = context;
  const staging = newStagingKey(layout.baseKey);
  try {
    await rows.stage(store.uriOf(staging));
    // From here on the table is declared: any caller may give it data, and it stays when the write fails.
    const location = await takeName(context, claim);
    const path = layout.pathOf(location);
    const publish = async () => {
      const version = await publishStaged({ store, root: staging }, { store, root: store.keyOf(path) });
      await confirmWritten(context, location);
      return version;
    };
    return { path, version: await afterChange(publish, "TableAlreadyExists", "ConcurrentModification") };
  } finally {
    await removeStaged(store, staging);
  }
}

/**
 * Removes the directories of tables that the catalog no longer has.
 *
 * The tables are gone already, so a failure to remove a directory is only logged.
 *
 * @returns whether none is left
 */
async function removeTables(
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
