import { isLanceError } from "../../../../namespace/errors.ts";
import type { Identifier } from "../../../../namespace/identifier.ts";
import type { Catalog } from "../../catalog/catalog.ts";
import type { CatalogView } from "../../catalog/state/view.ts";
import { walkTables } from "../../catalog/walk.ts";
import { objectIdOf } from "../tables/naming/object-names.ts";
import { isAutoView, SOURCE_QUERY } from "./definition.ts";
import { parseViewQuery } from "./query-text.ts";

/** A view with `auto_refresh`, and the table that it reads. */
export interface AutoView {
  readonly id: Identifier;
  readonly source: Identifier;
}

/** The views with `auto_refresh` of a catalog. */
export interface ViewRegister {
  /** Returns the views that read one of the tables; the root means all tables. */
  viewsOf(tables: readonly Identifier[]): Promise<AutoView[]>;
}

/** Creates a register that looks for views of other processes at most every so many milliseconds. */
export function createViewRegister(catalog: Pick<Catalog, "read" | "known">, lookMs: number): ViewRegister {
  const views = new Map<string, AutoView>();
  let lookedAt = Number.NEGATIVE_INFINITY;

  /** Brings the entry of a table up to date with a state of the catalog. */
  function look(state: CatalogView, id: Identifier): void {
    const properties = state.get(objectIdOf(id))?.properties ?? {};
    const query = isAutoView(properties) ? properties[SOURCE_QUERY] : undefined;
    const source = query === undefined ? undefined : sourceIn(query);
    if (source === undefined) views.delete(objectIdOf(id));
    else views.set(objectIdOf(id), { id, source });
  }
  async function lookAtAll(): Promise<void> {
    const now = performance.now();
    if (now - lookedAt < lookMs) return;
    // The walk reads the catalog now and then; a check for each table would be a request to a bucket for each.
    for await (const id of walkTables(catalog)) look(catalog.known(), id);
    // Those that others have dropped, or that were dropped with their namespace.
    const state = catalog.known();
    for (const key of views.keys()) if (state.get(key) === undefined) views.delete(key);
    lookedAt = now;
  }

  return {
    async viewsOf(tables) {
      await lookAtAll();
      const state = await catalog.read();
      for (const table of tables) look(state, table);
      const names = new Set(tables.map(objectIdOf));
      return [...views.values()].filter(({ source }) => names.has("") || names.has(objectIdOf(source)));
    },
  };
}

/** Returns the table that a view reads; undefined for an invalid query, which another program can give a table as a property. */
function sourceIn(query: string): Identifier | undefined {
  try {
    return parseViewQuery(query).source;
  } catch (error) {
    if (isLanceError(error, "InvalidInput")) return undefined;
    throw error;
  }
}
