import type { Namespace } from "../../client/namespace.ts";
import type { Identifier } from "../../namespace/identifier.ts";

/** Yields the names of all tables in a namespace and those below it. */
export async function* tablesBelow(namespace: Namespace, id: Identifier): AsyncGenerator<Identifier> {
  for await (const name of namespace.listNamespaces({ id })) yield* tablesBelow(namespace, [...id, name]);
  for await (const name of namespace.listTables({ id })) yield [...id, name];
}
