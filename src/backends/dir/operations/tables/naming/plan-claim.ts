import { LanceError } from "../../../../../namespace/errors.ts";
import type { Identifier } from "../../../../../namespace/identifier.ts";
import {
  checkNewLocation,
  isRootDirectory,
  LocationTaken,
  newLocation,
  rootLocation,
  uniqueLocation,
} from "../../../catalog/base/location-names.ts";
import type { CatalogContext } from "../../../catalog/catalog-context.ts";
import type { CatalogView } from "../../../catalog/state/view.ts";
import { expireClaim, isHiddenUnder } from "../../../catalog/table-marks.ts";
import { checkFree, checkOutsideOfTables, isFree } from "./free-location.ts";
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
