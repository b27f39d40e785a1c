import { type Identifier, joinIdentifier } from "../../../namespace/identifier.ts";
import type { Catalog } from "./catalog.ts";

/** Number of names that are taken from the catalog at a time. */
const PAGE = 64;

/** Yields all tables that have rows in a catalog, in no particular order; changes may hide or repeat some. */
export async function* walkTables(
  { read }: Pick<Catalog, "read">,
  namespace: Identifier = [],
): AsyncGenerator<Identifier, void> {
  const objectId = namespace.length === 0 ? "" : joinIdentifier(namespace);
  for (const kind of ["table", "namespace"] as const) {
    for (let after = ""; ; ) {
      const names = (await read()).children(objectId, kind, after, PAGE);
      for (const name of names) {
        if (kind === "table") yield [...namespace, name];
        else yield* walkTables({ read }, [...namespace, name]);
      }
      const last = names.at(-1);
      if (last === undefined || names.length < PAGE) break;
      after = last;
    }
  }
}
