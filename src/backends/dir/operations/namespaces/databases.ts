import {
  concernsDatabases,
  DATABASE_PROPERTY,
  isDatabase,
} from "../../../../namespace/call/database-context.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { Identifier } from "../../../../namespace/identifier.ts";
import type { Catalog } from "../../catalog/catalog.ts";
import { VIEW_PROPERTIES } from "../../catalog/state/row.ts";
import type { CatalogView } from "../../catalog/state/view.ts";
import { HOME_PROPERTY } from "../../function-homes.ts";

type Context = Readonly<Record<string, string>>;

/** Whether a namespace of the root is a database, as of every commit that ended before this call. */
export function hasDatabase(
  catalog: Pick<Catalog, "known" | "read">,
  name: string,
): boolean | Promise<boolean> {
  // A database that was dropped meanwhile is missing to the operation, too.
  return isDatabaseIn(catalog.known(), name) || catalog.read().then((state) => isDatabaseIn(state, name));
}

/** Whether a namespace of the root is a database in a state of the catalog. */
export function isDatabaseIn(state: Pick<CatalogView, "get">, name: string): boolean {
  const row = state.get(name);
  return row?.objectType === "namespace" && isDatabase(row.properties);
}

/** Whether a request requires that its object, if it is a namespace of the root, is a database. */
export function wantsDatabase(context: Context, id: Identifier): boolean {
  return id.length === 1 && concernsDatabases(context);
}

/**
 * Returns the properties of a new namespace, which make a database of it if the request wants one.
 *
 * @throws LanceError InvalidInput for properties that make a view of it: only the creation of a view needs the rights to its tables; and for the
 *   home of functions, which would be those of another namespace
 */
export function newProperties(context: Context, id: Identifier, properties: Context): Context {
  const name = Object.keys(properties).find((key) => key.startsWith(VIEW_PROPERTIES));
  if (name !== undefined)
    throw new LanceError("InvalidInput", `the property ${name} defines a view, which only CreateView does`);
  if (HOME_PROPERTY in properties)
    throw new LanceError("InvalidInput", `the property ${HOME_PROPERTY} is set by the server`);
  return wantsDatabase(context, id) ? { ...properties, [DATABASE_PROPERTY]: "true" } : properties;
}

/**
 * Returns the refusal of a namespace that would be taken for a database. It is InvalidInput where it exists, because clients take
 * a missing one for a database that they may create.
 */
export function noDatabase(id: Identifier): LanceError {
  const name = JSON.stringify(id[0]);
  const text = `the namespace ${name} is not a database; a client that connects to ${name} would see the root`;
  return new LanceError("InvalidInput", text);
}
