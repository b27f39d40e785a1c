import type { Call } from "../../../../namespace/call/call.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { Identifier } from "../../../../namespace/identifier.ts";
import { rootLocation } from "../../catalog/base/location-names.ts";
import type { CatalogContext } from "../../catalog/catalog-context.ts";
import type { Draft } from "../../catalog/state/draft.ts";
import type { Row } from "../../catalog/state/row.ts";
import type { CatalogView } from "../../catalog/state/view.ts";
import { unlistedAmong } from "../../catalog/walk.ts";
import type { DataContext } from "../../data/data-context.ts";
import type { FoundTable } from "../../data/table-source.ts";
import { isUnlistedTable, objectIdOf, tableNotFound } from "./naming/object-names.ts";

/** Returns the table of a row of the catalog; undefined for another object. */
export function listedTable(
  { pathOf }: CatalogContext["layout"],
  id: Identifier,
  { objectType, location, properties }: Row,
): FoundTable | undefined {
  if (objectType !== "table" || location === undefined) return undefined;
  return { id, location, path: pathOf(location), properties, listed: true };
}

/** Finds a table in a state, or in the root by its directory alone. */
export async function findTable(
  context: CatalogContext,
  state: CatalogView,
  id: Identifier,
): Promise<FoundTable | undefined> {
  const { layout } = context;
  const row = state.get(objectIdOf(id));
  if (row !== undefined) return listedTable(layout, id, row);
  if (!(await isUnlistedTable(context, state, id))) return undefined;
  const location = rootLocation(id);
  return { id, location, path: layout.pathOf(location), properties: {}, listed: false };
}

/**
 * Returns the table of a call.
 *
 * @param id another table that the call needs. Default: its own object
 * @param isOpening whether the call opens the table at the same time, as for `TableSource.find`. Default: false
 * @throws LanceError TableNotFound; InvalidInput for the root
 */
export async function requireTable(
  { tables }: Pick<DataContext, "tables">,
  call: Pick<Call, "id">,
  id: Identifier = call.id,
  isOpening = false,
): Promise<FoundTable> {
  if (id.length === 0) throw new LanceError("InvalidInput", "the identifier of a table must not be empty");
  const table = await tables.find(call, id, isOpening);
  if (table === undefined) throw tableNotFound(id);
  return table;
}

/**
 * Returns the table of a call that is about to take it from its name. A table without a row gets one, because only rows can
 * tell which of several callers has the table, and keep its location from others.
 *
 * @throws LanceError TableNotFound, also when another caller dropped a table without a row; ConcurrentModification when
 *   another caller gave it the row; InvalidInput for the root
 */
export async function requireRow(
  context: CatalogContext & Pick<DataContext, "tables">,
  id: Identifier,
): Promise<FoundTable> {
  const table = await requireTable(context, { id });
  if (table.listed) return table;
  const { catalog } = context;
  await catalog.mutate((draft) => giveRow(draft, id, table));
  const [isThere] = await unlistedAmong(context, [table.location]);
  if (isThere !== undefined) return { ...table, listed: true };
  await catalog.mutate((draft) => takeBack(draft, id, table));
  throw tableNotFound(id);
}

/**
 * Checks that a table which a call has found still has its name, as a mutation of the catalog that is about to put its row.
 *
 * @throws LanceError ConcurrentModification if it was dropped or renamed meanwhile, whatever has its name or its location now
 */
export function requireUnchanged(draft: Draft, id: Identifier, { location, listed }: FoundTable): void {
  const row = draft.get(objectIdOf(id));
  const isUnchanged =
    row === undefined
      ? !listed && draft.ownerOf(location) === undefined
      : row.objectType === "table" && row.location === location;
  if (isUnchanged) return;
  throw new LanceError("ConcurrentModification", "the table was dropped or renamed while it was written");
}

/** Adds the row of a table that has none, as a mutation of the catalog. @throws LanceError ConcurrentModification */
function giveRow(draft: Draft, id: Identifier, { location, properties }: FoundTable): void {
  const objectId = objectIdOf(id);
  if (draft.get(objectId) !== undefined || draft.ownerOf(location) !== undefined) {
    throw new LanceError(
      "ConcurrentModification",
      "the table's catalog entry was created concurrently; try again",
    );
  }
  draft.put({ objectId, objectType: "table", location, properties });
}

/** Removes a row that a table should not have got, unless another caller took it first. */
function takeBack(draft: Draft, id: Identifier, { location }: FoundTable): void {
  const row = draft.get(objectIdOf(id));
  if (row?.location === location) draft.delete(row.objectId);
}
