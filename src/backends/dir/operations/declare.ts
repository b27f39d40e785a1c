import { create } from "@bufbuild/protobuf";
import {
  type DeclareTableResponse,
  DeclareTableResponseSchema,
  RegisterTableMode,
  RegisterTableResponseSchema,
} from "../../../gen/lance/namespace/v1/table_pb.ts";
import { LanceError } from "../../../namespace/errors.ts";
import type { Identifier } from "../../../namespace/identifier.ts";
import type { LanceNamespace } from "../../../namespace/port.ts";
import { checkNewLocation, isRootDirectory, newLocation, uniqueLocation } from "../catalog/layout.ts";
import type { CatalogView, Draft } from "../catalog/state.ts";
import type { DirContext } from "./context.ts";
import {
  checkNewIdentifier,
  isUnlistedTable,
  managedVersioning,
  objectIdOf,
  requireParent,
  tableExists,
} from "./lookup.ts";

/** The operations that bring a table's name into the catalog without its data. */
export function createDeclareOperations(
  context: DirContext,
): Pick<LanceNamespace, "declareTable" | "registerTable"> {
  const { catalog, layout, log } = context;

  /** Marks the location of a table that has its row: implementations that list directories go by the mark. */
  async function reserve(location: string): Promise<void> {
    let failure: unknown;
    await layout.reserve(location).catch((error: unknown) => {
      failure = error;
    });
    if ((await catalog.read()).ownerOf(location) !== undefined) {
      if (failure !== undefined)
        log.warn({ err: failure, location }, "a declared table is not marked as such");
      return;
    }
    // Whoever dropped it meanwhile found no directory, and the one that is there now would show as a table.
    await layout.remove(location);
  }

  return {
    async declareTable({ location: wanted, properties }, { id }) {
      const location = await claimTable(context, id, properties, wanted || undefined);
      await reserve(location);
      return declaredTable(context, location, properties);
    },
    async registerTable({ location, mode, properties }, { id }) {
      checkNewIdentifier(id);
      checkNewLocation(location);
      await layout.checkNoEscape(location);
      const unlisted = await isUnlistedTable(context, await catalog.read(), id);
      await catalog.mutate((draft) => {
        requireParent(draft, id);
        const existing = draft.get(objectIdOf(id));
        const replaces = mode === RegisterTableMode.OVERWRITE && existing?.objectType === "table";
        if (existing !== undefined && !replaces) throw tableExists(id);
        if (existing === undefined && unlisted && location !== `${id[0]}.lance`) throw tableExists(id);
        if (existing?.location !== location) checkFree(draft, location, existing?.location);
        draft.put({ objectId: objectIdOf(id), objectType: "table", location, properties });
      });
      if (await layout.exists(location)) await layout.setDeregistered(location, false);
      return create(RegisterTableResponseSchema, { location, properties });
    },
  };
}

/** The answer to a declaration. */
export function declaredTable(
  context: DirContext,
  location: string,
  properties: Readonly<Record<string, string>>,
): DeclareTableResponse {
  return create(DeclareTableResponseSchema, {
    location: context.layout.pathOf(location),
    properties: { ...properties },
    ...managedVersioning(context, properties),
  });
}

/** A name that is about to be taken. */
export interface Claim {
  /** The location that the table will have, unless it is a root's and taken meanwhile. */
  readonly location: string;
  /** Takes the name, as a mutation of the catalog; returns the table's location, relative to the base. */
  apply(draft: Draft): string;
}

/**
 * Takes a name for a new table: its row is there afterwards, and nobody else can have it.
 *
 * @param wanted the location that the client asks for
 * @returns the location, relative to the base
 * @throws LanceError NamespaceNotFound, TableAlreadyExists; InvalidInput for a location that is not free.
 */
async function claimTable(
  context: DirContext,
  id: Identifier,
  properties: Readonly<Record<string, string>>,
  wanted?: string,
): Promise<string> {
  const { catalog } = context;
  checkNewIdentifier(id);
  const { apply } = await planClaim(context, await catalog.read(), id, properties, wanted);
  return catalog.mutate(apply);
}

/**
 * Prepares to take a name for a new table: chooses its location and writes nothing. See {@link claimTable}.
 *
 * The usual location of a root's table may be taken until the name is: then the table gets another one.
 *
 * @param id checked by {@link checkNewIdentifier}
 * @throws LanceError TableAlreadyExists, InvalidInput; `apply` throws the others.
 */
export async function planClaim(
  context: DirContext,
  view: CatalogView,
  id: Identifier,
  properties: Readonly<Record<string, string>>,
  wanted?: string,
): Promise<Claim> {
  const { layout } = context;
  if (await isUnlistedTable(context, view, id)) throw tableExists(id);
  const location = wanted === undefined ? await freeLocation(context, id) : relativeLocation(context, wanted);
  if (wanted !== undefined && (await layout.exists(location))) {
    throw new LanceError("InvalidInput", `location ${JSON.stringify(wanted)} is not empty`);
  }
  await layout.checkNoEscape(location);
  const other = uniqueLocation(id);
  return {
    location,
    apply(draft) {
      requireParent(draft, id);
      if (draft.get(objectIdOf(id)) !== undefined) throw tableExists(id);
      const taken =
        isRootDirectory(location) && wanted === undefined && draft.ownerOf(location) !== undefined;
      const chosen = taken ? other : location;
      checkFree(draft, chosen, undefined);
      draft.put({ objectId: objectIdOf(id), objectType: "table", location: chosen, properties });
      return chosen;
    },
  };
}

/** The usual location of a table, or another one when a deregistered table still has its files there. */
async function freeLocation({ layout }: DirContext, id: Identifier): Promise<string> {
  const location = newLocation(id);
  return (await layout.exists(location)) ? uniqueLocation(id) : location;
}

/** A client may send back the absolute path that an earlier answer had. */
function relativeLocation({ layout }: DirContext, wanted: string): string {
  const prefix = `${layout.base}/`;
  const location = wanted.startsWith(prefix) ? wanted.slice(prefix.length) : wanted;
  checkNewLocation(location);
  return location;
}

/**
 * Refuses a location that is, holds, or lies in another table's directory: dropping one would harm the other.
 *
 * @throws LanceError InvalidInput
 */
function checkFree(draft: Draft, location: string, own: string | undefined): void {
  const parts = location.split("/");
  const around = parts.map((_, i) => parts.slice(0, i + 1).join("/"));
  const inside = [...draft.nestedLocations()].filter((other) => other.startsWith(`${location}/`));
  const taken = [...around.filter((other) => draft.ownerOf(other) !== undefined), ...inside];
  if (taken.some((other) => other !== own)) {
    throw new LanceError("InvalidInput", `location ${JSON.stringify(location)} belongs to another table`);
  }
}
