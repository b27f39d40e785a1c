import { LanceError } from "../../../../namespace/errors.ts";
import type { Identifier } from "../../../../namespace/identifier.ts";
import { rootLocation } from "../../catalog/base/location-names.ts";
import type { CatalogContext } from "../../catalog/catalog-context.ts";
import type { CatalogView } from "../../catalog/state/view.ts";
import { objectIdOf, tableNotFound } from "./naming/object-names.ts";
import { isUnlistedTable } from "./naming/unlisted-table.ts";

/** A table as the catalog knows it. */
export interface FoundTable {
  readonly id: Identifier;
  /** The location relative to the base. */
  readonly location: string;
  /** The absolute path, as in answers. */
  readonly path: string;
  readonly properties: Readonly<Record<string, string>>;
  /** Whether the manifest has a row for the table; a table of the first version of the format has none. */
  readonly listed: boolean;
}

/** Finds a table in a state, or in the root by its directory alone. */
export async function findTable(
  context: CatalogContext,
  state: CatalogView,
  id: Identifier,
): Promise<FoundTable | undefined> {
  const { layout } = context;
  const row = state.get(objectIdOf(id));
  if (row !== undefined) {
    if (row.objectType !== "table" || row.location === undefined) return undefined;
    return {
      id,
      location: row.location,
      path: layout.pathOf(row.location),
      properties: row.properties,
      listed: true,
    };
  }
  if (!(await isUnlistedTable(context, state, id))) return undefined;
  const location = rootLocation(id);
  return { id, location, path: layout.pathOf(location), properties: {}, listed: false };
}

/**
 * Returns the table of a call.
 *
 * @throws LanceError TableNotFound; InvalidInput for the root
 */
export async function requireTable(context: CatalogContext, id: Identifier): Promise<FoundTable> {
  if (id.length === 0) throw new LanceError("InvalidInput", "the identifier of a table must not be empty");
  const table = await findTable(context, await context.catalog.read(), id);
  if (table === undefined) throw tableNotFound(id);
  return table;
}
