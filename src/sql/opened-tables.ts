import { LanceError } from "../namespace/errors.ts";
import type { SqlTable, SqlTableName, SqlTables, SqlView } from "./sql-engine.ts";
import { tableKey } from "./tree/tables.ts";

/** The tables of a statement, each of which is opened once. */
export interface Opening {
  /** Returns the open tables in order; "views" if views are among them that {@link views} has not returned yet. */
  open(names: readonly SqlTableName[], signal: AbortSignal): Promise<readonly SqlTable[] | "views">;
  /** Returns the views that were found. */
  views(): readonly SqlView[];
}

/** @param known views that are found already */
export function createOpening(tables: SqlTables, known: readonly SqlView[]): Opening {
  const found = new Map<string, Promise<SqlTable | SqlView>>();
  const views = new Map(known.map((view) => [tableKey(view), view]));
  return {
    async open(names, signal) {
      const all = await Promise.all(
        names.map(async ({ search, ...name }) => {
          const key = tableKey(name);
          const opened = found.get(key) ?? tables.open(name, signal);
          found.set(key, opened);
          const open = await opened;
          if (search === undefined) return open;
          if (isTable(open)) return { ...open, search };
          throw new LanceError("InvalidInput", `"${name.path.join(".")}" is a view; a search is of a table`);
        }),
      );
      const open = all.filter(isTable);
      if (open.length === all.length) return open;
      for (const each of all) if (!isTable(each)) views.set(tableKey(each), each);
      return "views";
    },
    views: () => [...views.values()],
  };
}

/** Opens a table that a statement changes. @throws LanceError InvalidInput for a view, and the errors of the table */
export async function openTable(
  tables: SqlTables,
  name: SqlTableName,
  signal: AbortSignal,
): Promise<SqlTable> {
  const open = await tables.open(name, signal);
  if (isTable(open)) return open;
  throw new LanceError(
    "InvalidInput",
    `"${name.path.join(".")}" is a view, whose rows are those of its query`,
  );
}

function isTable(open: SqlTable | SqlView): open is SqlTable {
  return !("query" in open);
}
