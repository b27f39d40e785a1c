import { isLanceError, LanceError } from "../../../namespace/errors.ts";
import type { Identifier } from "../../../namespace/identifier.ts";
import { removeTables } from "../batch/remove-tables.ts";
import { isRootDirectory } from "../catalog/layout.ts";
import type { DirContext } from "./context.ts";
import { type Claim, planClaim } from "./declare.ts";
import { checkNewIdentifier, objectIdOf } from "./lookup.ts";
import type { ReceivedRows } from "./received-rows.ts";
import { newStagingKey } from "./staged-write.ts";

/** A table that has been made. */
export interface NewTable {
  readonly path: string;
  readonly version: number;
}

/**
 * Makes a table that nobody has: its data, and its row, which only one of several callers gets.
 *
 * In a place that nobody can know of the data comes first, so that no reader finds less than the whole table, and no
 * other implementation takes it for declared and writes its own data over it. The directory of a root's table would
 * show without its row, so there the row comes first, and the data moves in or, where nothing can be moved, follows.
 *
 * @throws LanceError TableAlreadyExists, NamespaceNotFound; ConcurrentModification, when the table was dropped
 *   meanwhile
 */
export async function createNew(
  context: DirContext,
  id: Identifier,
  rows: ReceivedRows,
  properties: Readonly<Record<string, string>>,
): Promise<NewTable> {
  const { catalog, layout, store } = context;
  const { files } = store;
  checkNewIdentifier(id);
  const claim = await planClaim(context, await catalog.read(), id, properties);
  const staging = files && newStagingKey(layout);
  try {
    const version = staging === undefined ? undefined : await rows.stage(store.uriOf(staging));
    const write = async (path: string, isShared: boolean) => {
      if (staging === undefined) return isShared ? rows.create({ path }) : rows.stage(path);
      if (await files?.moveDirectory(staging, store.keyOf(path))) return version as number;
      throw new LanceError("TableAlreadyExists", "the table already exists");
    };
    const make = isRootDirectory(claim.location) ? createInRoot : createApart;
    return await make(context, id, claim, write);
  } finally {
    if (staging !== undefined) await store.deleteDirectory(staging);
  }
}

/** Writes the data to a path, which others may write to at the same time, and returns its version. */
type Write = (path: string, isShared: boolean) => Promise<number>;

async function createApart(
  context: DirContext,
  id: Identifier,
  { location, apply }: Claim,
  write: Write,
): Promise<NewTable> {
  const path = context.layout.pathOf(location);
  try {
    const version = await write(path, false);
    await context.catalog.mutate(apply);
    return { path, version };
  } catch (error) {
    await giveUp(context, id, location);
    throw error;
  }
}

async function createInRoot(
  context: DirContext,
  id: Identifier,
  { apply }: Claim,
  write: Write,
): Promise<NewTable> {
  const { catalog, layout } = context;
  const location = await catalog.mutate(apply);
  const path = layout.pathOf(location);
  try {
    await layout.setDeregistered(location, false);
    const version = await write(path, true);
    if ((await catalog.read()).get(objectIdOf(id))?.location === location) return { path, version };
    throw new LanceError("ConcurrentModification", "the table was dropped while it was written");
  } catch (error) {
    // Whoever took the declared name over in between has written a table that stays.
    if (!isLanceError(error, "TableAlreadyExists")) await giveUp(context, id, location);
    throw error;
  }
}

/** Takes a table back whose creation failed; its row may be there when the storage did not say what it did. */
async function giveUp(context: DirContext, id: Identifier, location: string): Promise<void> {
  await context.catalog.mutate((draft) => {
    if (draft.get(objectIdOf(id))?.location === location) draft.delete(objectIdOf(id));
  });
  await removeTables(context, [location]);
}
