import type { ArrowField } from "../arrow/schema.ts";
import { LanceError } from "../namespace/errors.ts";
import type { CheckedStatement } from "./checked-statements.ts";
import { columnOf, fieldsByName, fieldsOf } from "./column-types.ts";
import type { ScannedTable } from "./process/messages.ts";
import type { SqlTable } from "./sql-engine.ts";
import { namesRowId } from "./tree/kept.ts";
import { type Pushed, pushedInto } from "./tree/pushdown.ts";

/** A statement that processes bind under an id. It fits every call whose tables have these columns. */
export interface Plan extends CheckedStatement {
  readonly id: number;
  /** Schemas of its tables. */
  readonly schemas: readonly Uint8Array[];
  readonly scanned: readonly ScannedTable[];
  readonly pushed: ReadonlyMap<number, Pushed>;
  /** Whether it must not read kept tables. */
  readonly namesRowId: boolean;
  /** The newest plan that reads kept tables in place of some of these, with their names. */
  kept?: { readonly names: string; readonly plan: Plan };
}

/** Whether a plan is right for tables: they have the columns that it was made for, and about as many rows. */
export function fits({ schemas, scanned }: Plan, open: readonly SqlTable[]): boolean {
  return open.every(({ schema, rows = 0 }, i) => {
    const { rows: planned = 0 } = scanned[i] as ScannedTable;
    const isNear = rows <= 2 * planned && planned <= 2 * rows;
    return isNear && Buffer.compare(schema, schemas[i] as Uint8Array) === 0;
  });
}

/** Plans a statement over open tables. @throws LanceError Unsupported for a table whose columns SQL does not tell apart */
export function planOf(checked: CheckedStatement, open: readonly SqlTable[], id: number): Plan {
  const fields = open.map(fieldsOf);
  return {
    ...checked,
    id,
    namesRowId: namesRowId(checked.tree),
    schemas: open.map(({ schema }) => schema),
    scanned: open.map(({ rows }, i) =>
      scannedTable(checked.tables[i]?.text as string, fields[i] as readonly ArrowField[], rows),
    ),
    pushed: pushedInto(checked.tree, (place) => fields[checked.places[place] as number] ?? []),
  };
}

function scannedTable(name: string, fields: readonly ArrowField[], rows: number | undefined): ScannedTable {
  fieldsByName(fields, name);
  if (fields.length === 0) throw new LanceError("Unsupported", `table "${name}" has no columns`);
  return { name, columns: fields.map(columnOf), rows };
}
