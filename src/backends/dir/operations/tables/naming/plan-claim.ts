import { isLanceError, LanceError } from "../../../../../namespace/errors.ts";
import type { Identifier } from "../../../../../namespace/identifier.ts";
import {
  checkNewLocation,
  isRootDirectory,
  LocationTaken,
  newLocation,
  rootLocation,
  uniqueLocation,
} from "../../../catalog/base/location-names.ts";
import type { CatalogContext, TableContext } from "../../../catalog/catalog-context.ts";
import type { CatalogView } from "../../../catalog/state/view.ts";
import { expireClaim, isHiddenUnder } from "../../../catalog/table-marks.ts";
import { otherFiles } from "../../../format/table-files.ts";
import { readVersion } from "../../../format/versions/version-files.ts";
import {
  checkNewIdentifier,
  isUnlistedTable,
  mayBeUnlisted,
  objectIdOf,
  requireParent,
  tableExists,
} from "./object-names.ts";
import type { Claim } from "./take-name.ts";

/**
 * Plans to take a name for a new table: chooses its location, and writes nothing except that it takes an old claim away.
 *
 * A root table gets a location drawn at random if anything is at its usual one, or if another caller takes that before
 * the name is taken.
 *
 * @param view returns the state of the catalog, if the plan needs it
 * @param id checked by {@link checkNewIdentifier}
 * @param wanted the location that the client asks for
 * @throws LanceError TableAlreadyExists, InvalidInput for a location that is not free; `apply` throws the others, such
 *   as NamespaceNotFound
 */
export async function planClaim(
  context: CatalogContext,
  view: () => Promise<CatalogView>,
  id: Identifier,
  properties: Readonly<Record<string, string>>,
  wanted?: string,
): Promise<Claim> {
  const { layout } = context;
  const state = mayBeUnlisted(id) ? await view() : undefined;
  if (state !== undefined) await checkAbsent(context, state, id);
  if (wanted === undefined) {
    const location = await freeLocation(context, id, state);
    const elsewhere = () => claimOf(id, { location: uniqueLocation(id), isPrivate: true }, properties);
    return isRootDirectory(location)
      ? { ...claimOf(id, { location, isPrivate: false }, properties), elsewhere }
      : claimOf(id, { location, isPrivate: true }, properties);
  }
  const location = relativeLocation(context, wanted);
  await layout.checkNoEscape(location);
  await checkOutsideOfTables(context, location);
  if (!(await layout.isEmpty(location))) {
    throw new LanceError("InvalidInput", `location ${JSON.stringify(wanted)} is not empty`);
  }
  return claimOf(id, { location, isPrivate: false }, properties);
}

/** Checks that the root has nothing under a name. @throws LanceError TableAlreadyExists */
async function checkAbsent(context: CatalogContext, view: CatalogView, id: Identifier): Promise<void> {
  if (view.get(objectIdOf(id)) !== undefined || (await isUnlistedTable(context, view, id)))
    throw tableExists(id);
}

/**
 * Plans to take a name for a new table whose location is drawn at random, also in the root.
 *
 * @throws LanceError TableAlreadyExists, and the errors of {@link Claim.apply}
 */
export async function planPrivateClaim(context: CatalogContext, id: Identifier): Promise<Claim> {
  await checkNewIdentifier(context, id);
  if (mayBeUnlisted(id)) await checkAbsent(context, await context.catalog.read(), id);
  const location = uniqueLocation(id);
  await context.layout.checkNoEscape(location);
  return claimOf(id, { location, isPrivate: true }, {});
}

function claimOf(
  id: Identifier,
  { location, isPrivate }: Pick<Claim, "location" | "isPrivate">,
  properties: Readonly<Record<string, string>>,
): Claim {
  return {
    location,
    isPrivate,
    isHidden: isHiddenUnder(location, objectIdOf(id)),
    apply(draft) {
      requireParent(draft, id);
      if (draft.get(objectIdOf(id)) !== undefined) throw tableExists(id);
      if (id.length === 1 && location === rootLocation(id) && !isFree(draft, location))
        throw new LocationTaken();
      checkFree(draft, location);
      draft.put({ objectId: objectIdOf(id), objectType: "table", location, properties });
    },
  };
}

/**
 * Returns the usual location of a table, or a random one when anything is there, such as a deregistered table, or when a
 * table without a directory has it or a place in it.
 */
async function freeLocation(
  context: CatalogContext,
  id: Identifier,
  state: CatalogView | undefined,
): Promise<string> {
  const { layout } = context;
  const location = newLocation(id);
  await layout.checkNoEscape(location);
  if (!isRootDirectory(location)) return location;
  if (state !== undefined && !isFree(state, location)) return uniqueLocation(id);
  const isVacant = (await layout.isEmpty(location)) || (await expireClaim(context, location));
  return isVacant ? location : uniqueLocation(id);
}

/** Returns a location relative to the base; a client may send the absolute path of an earlier answer. */
function relativeLocation({ layout }: CatalogContext, wanted: string): string {
  const location = layout.relativeTo(wanted) ?? wanted;
  checkNewLocation(location);
  return location;
}

/**
 * Refuses a location that contains, equals or is inside of another table's directory: dropping one would harm the
 * other.
 *
 * @throws LanceError InvalidInput
 */
export function checkFree(view: CatalogView, location: string, own?: string): void {
  if (!isFree(view, location, own)) throw ofAnotherTable(location);
}

/** Whether no row has a location, or one that contains it or is inside of it. */
export function isFree(view: CatalogView, location: string, own?: string): boolean {
  const isAround = around(location).some((other) => other !== own && view.ownerOf(other) !== undefined);
  return !isAround && !hasOther(view.locationsInside(location), own);
}

/** Returns a location and the directories that contain it. */
function around(location: string): string[] {
  const parts = location.split("/");
  return parts.map((_, i) => parts.slice(0, i + 1).join("/"));
}

/**
 * Refuses a location inside of a table's directory, also of one without a row, which {@link checkFree} does not see.
 *
 * @throws LanceError InvalidInput
 */
export async function checkOutsideOfTables({ layout }: CatalogContext, location: string): Promise<void> {
  for (const directory of around(location).slice(0, -1))
    if ((await layout.dataState(directory)) !== "lost") throw ofAnotherTable(location);
}

/** Maximum number of files that a table to be registered may have in its directory beside its own. */
const MAX_OTHER_FILES = 10_000;

/** A version of a dataset, or the mark of a declared table. */
const OF_TABLE = /\/(?:_versions\/[^/]*\.manifest|\.lance-reserved)$/;

/**
 * Refuses a location unless a readable dataset or a declared table is there that contains no other one.
 *
 * @throws LanceError InvalidInput; Unsupported for a table of a newer format
 */
export async function checkHasOneTable(
  { layout, store }: Pick<TableContext, "layout" | "store">,
  location: string,
): Promise<void> {
  const refused = (reason: string, cause?: unknown) =>
    new LanceError("InvalidInput", `location ${JSON.stringify(location)} ${reason}`, { cause });
  const state = await layout.dataState(location);
  if (state === "lost") throw refused("does not contain a Lance table");
  const root = store.keyOf(layout.pathOf(location));
  if (state === "written")
    await readVersion({ store, root }).catch((error: unknown) => {
      if (isLanceError(error, "Unsupported")) throw error;
      throw refused("does not contain a readable Lance table", error);
    });
  let count = 0;
  for await (const path of otherFiles(store, root)) {
    if (OF_TABLE.test(path))
      throw refused(`contains another table in ${JSON.stringify(path.replace(OF_TABLE, ""))}`);
    if (++count > MAX_OTHER_FILES)
      throw refused(`contains more than ${MAX_OTHER_FILES} files that do not belong to the table`);
  }
}

function ofAnotherTable(location: string): LanceError {
  return new LanceError("InvalidInput", `location ${JSON.stringify(location)} belongs to another table`);
}

function hasOther(locations: Iterable<string>, own: string | undefined): boolean {
  for (const location of locations) if (location !== own) return true;
  return false;
}
