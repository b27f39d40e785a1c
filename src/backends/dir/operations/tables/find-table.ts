import type { Call } from "../../../../namespace/call/call.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { Identifier } from "../../../../namespace/identifier.ts";
import { rootLocation } from "../../catalog/base/location-names.ts";
import type { CatalogContext } from "../../catalog/catalog-context.ts";
import type { Row } from "../../catalog/state/row.ts";
import type { CatalogView } from "../../catalog/state/view.ts";
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
 * @throws LanceError TableNotFound; InvalidInput for the root
 */
export async function requireTable(
  { tables }: Pick<DataContext, "tables">,
  call: Pick<Call, "id">,
  id: Identifier = call.id,
): Promise<FoundTable> {
  if (id.length === 0) throw new LanceError("InvalidInput", "the identifier of a table must not be empty");
  const table = await tables.find(call, id);
  if (table === undefined) throw tableNotFound(id);
  return table;
}
