import { randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import {
  type DeclareTableResponse,
  DeclareTableResponseSchema,
  RegisterTableMode,
  RegisterTableResponseSchema,
} from "../../../../gen/lance/namespace/v1/table_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { Identifier } from "../../../../namespace/identifier.ts";
import type { LanceNamespace } from "../../../../namespace/lance-namespace.ts";
import type { ChangeContext } from "../../batch/change-context.ts";
import { refuseWhileRemoved } from "../../batch/journal.ts";
import { releaseClaims, resolveAbandoned } from "../../batch/resolve.ts";
import { isRefusal, runBatch } from "../../batch/run.ts";
import {
  isRootDirectory,
  newLocation,
  rootLocation,
  uniqueLocation,
} from "../../catalog/base/location-names.ts";
import { checkNewLocation, LocationTaken } from "../../catalog/base/location-rules.ts";
import type { CatalogContext } from "../../catalog/catalog-context.ts";
import type { Draft } from "../../catalog/state/draft.ts";
import type { CatalogView } from "../../catalog/state/view.ts";
import { expireClaim, isHiddenUnder, ownerOf, updateMark } from "../../catalog/table-marks.ts";
import { afterChange } from "../../format/changes/after-change.ts";
import type { StorageOptions } from "../../stores/storage-options.ts";
import type { DirectAccessContext } from "../context.ts";
import { checkTableProperties } from "../properties.ts";
import { credentialsFor, directAccess } from "./direct-access.ts";
import {
  checkNewIdentifier,
  isUnlistedTable,
  mayBeUnlisted,
  objectIdOf,
  requireParent,
  tableExists,
} from "./lookup.ts";

/** The operations that add a table's name to the catalog without data. */
export function createDeclareOperations(
  context: ChangeContext & DirectAccessContext,
): Pick<LanceNamespace, "declareTable" | "registerTable"> {
  const { catalog, journal, layout } = context;

  return {
    async declareTable(request, call) {
      const { location: wanted, properties } = request;
      const { id } = call;
      checkNewIdentifier(id);
      checkTableProperties(properties);
      const claim = await planClaim(context, catalog.read, id, properties, wanted || undefined);
      const vend = (location: string) => credentialsFor(context, layout.pathOf(location), request, call);
      // Before the name is taken, so that a failure leaves nothing behind.
      await vend(claim.location);
      const location = await takeName(context, claim);
      return declaredTable(context, location, properties, await vend(location));
    },
    async registerTable({ location, mode, properties }, { id, signal }) {
      checkNewIdentifier(id);
      checkTableProperties(properties);
      checkNewLocation(location);
      await layout.checkNoEscape(location);
      await checkOutsideOfTables(context, location);
      await resolveAbandoned(context);
      await refuseWhileRemoved(journal, location);
      const unlisted = await isUnlistedTable(context, await catalog.read(), id);
      const register = (draft: Draft) => {
        requireParent(draft, id);
        const existing = draft.get(objectIdOf(id));
        const replaces = mode === RegisterTableMode.OVERWRITE && existing?.objectType === "table";
        if (existing !== undefined && !replaces) throw tableExists(id);
        if (existing === undefined && unlisted && location !== rootLocation(id)) throw tableExists(id);
        if (existing?.location !== location) checkFree(draft, location, existing?.location);
        draft.put({ objectId: objectIdOf(id), objectType: "table", location, properties });
      };
      const locations = isRootDirectory(location) ? [location] : [];
      await runBatch(context, { changes: [register], departing: "keep", locations }, signal);
      return create(RegisterTableResponseSchema, { location, properties });
    },
  };
}

/** Returns the answer to a declaration. */
export function declaredTable(
  context: Pick<CatalogContext, "layout"> & DirectAccessContext,
  location: string,
  properties: Readonly<Record<string, string>>,
  credentials?: StorageOptions,
): DeclareTableResponse {
  return create(DeclareTableResponseSchema, {
    location: context.layout.pathOf(location),
    properties: { ...properties },
    ...directAccess(context, properties, credentials),
  });
}

/** A plan to take a name. */
export interface Claim {
  /** The location of the table, relative to the base. */
  readonly location: string;
  /** Whether no other caller can know the location, because it was drawn at random for this claim. */
  readonly isPrivate: boolean;
  /** Whether the directory stays hidden from implementations that list directories, because it has another table's name. */
  readonly isHidden: boolean;
  /** Plans to take the name at a private location, if another caller takes this one first. Default: that is an error. */
  readonly elsewhere?: () => Claim;
  /** Takes the name as a mutation of the catalog. @throws LocationTaken */
  apply(draft: Draft): void;
}

/**
 * Takes a name for a new table, which is declared from then on.
 *
 * The mark is written before the row, so that the table never looks as if it had lost its directory.
 *
 * @returns the location, relative to the base
 */
export async function takeName(context: CatalogContext, claim: Claim): Promise<string> {
  return claim.isPrivate ? takePrivately(context, claim) : takeOpenly(context, claim);
}

/** Takes a name at a private location: another caller finds it only through its row, and then its mark exists. */
async function takePrivately(
  { catalog, layout }: CatalogContext,
  { location, apply }: Claim,
): Promise<string> {
  await layout.reserveNew(location);
  await catalog.mutate(apply).catch(async (error: unknown) => {
    if (isRefusal(error)) await layout.remove(location);
    throw error;
  });
  return location;
}

/** Takes a name at a location that others may want, too, and that only one of them can claim (docs/adr/0101). */
async function takeOpenly(context: CatalogContext, claim: Claim): Promise<string> {
  const { catalog, layout } = context;
  const { location, isHidden, apply, elsewhere } = claim;
  const text = randomUUID();
  try {
    if (!(await layout.claim(location, text))) throw new LocationTaken();
    await catalog.mutate(apply).catch(async (error: unknown) => {
      if (isRefusal(error)) await releaseClaims(context, [location], text);
      throw error;
    });
  } catch (error) {
    if (!(error instanceof LocationTaken) || elsewhere === undefined) throw error;
    return takePrivately(context, elsewhere());
  }
  await afterChange(() => (isHidden ? updateMark(context, location) : showDeclared(context, location, text)));
  return location;
}

/** Shows the directory of a declared table, unless the table has been dropped meanwhile. */
async function showDeclared(context: CatalogContext, location: string, claim: string): Promise<void> {
  const { layout } = context;
  const isShown = await layout.reveal(location, claim);
  const isOwned = (await ownerOf(context, location)) !== undefined;
  if (isShown && isOwned) return;
  // Another process that completes an old drop may have removed the mark.
  if (isOwned) await layout.reserve(location);
  await updateMark(context, location);
}

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
  checkNewIdentifier(id);
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
function checkFree(view: CatalogView, location: string, own?: string): void {
  if (!isFree(view, location, own)) throw ofAnotherTable(location);
}

/** Whether no row has a location, or one that contains it or is inside of it. */
function isFree(view: CatalogView, location: string, own?: string): boolean {
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
async function checkOutsideOfTables({ layout }: CatalogContext, location: string): Promise<void> {
  for (const directory of around(location).slice(0, -1))
    if ((await layout.dataState(directory)) !== "lost") throw ofAnotherTable(location);
}

function ofAnotherTable(location: string): LanceError {
  return new LanceError("InvalidInput", `location ${JSON.stringify(location)} belongs to another table`);
}

function hasOther(locations: Iterable<string>, own: string | undefined): boolean {
  for (const location of locations) if (location !== own) return true;
  return false;
}
