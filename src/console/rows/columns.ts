import { DataType, type Table, type Vector } from "apache-arrow";
import { fieldPath } from "../table/index-types.ts";

/** A column of rows, as a grid has it. */
export interface GridColumn {
  readonly name: string;
  readonly type: DataType;
  readonly values: Vector | null;
}

/** Columns that a search adds, in the order in which they come first. */
const FOUND = ["_relevance_score", "_score", "_distance"];

/** Returns the columns of rows: how well they match a search first. */
export function columnsOf(rows: Table): readonly GridColumn[] {
  const columns = rows.schema.fields.map(({ name, type }, at) => ({
    name,
    type,
    values: rows.getChildAt(at),
  }));
  const rank = ({ name }: GridColumn) => (FOUND.indexOf(name) + FOUND.length + 1) % (FOUND.length + 1);
  return columns.toSorted((a, b) => rank(a) - rank(b));
}

/** An order of rows by a column. */
export interface RowOrder {
  readonly column: string;
  readonly isAscending: boolean;
}

/** Returns the order after a choice of a column: ascending, descending, and then none. */
export function nextOrder(order: RowOrder | undefined, column: string): RowOrder | undefined {
  if (order?.column !== column) return { column, isAscending: true };
  return order.isAscending ? { column, isAscending: false } : undefined;
}

/** Whether values of a type are numbers, which stand at the right. */
export function isNumber(type: DataType): boolean {
  return DataType.isInt(type) || DataType.isFloat(type) || DataType.isDecimal(type);
}

/** Whether values of a type can be put in order. */
export function isSortable(type: DataType): boolean {
  const isBytes = DataType.isBinary(type) || DataType.isLargeBinary(type) || DataType.isFixedSizeBinary(type);
  return (type.children ?? []).length === 0 && !isBytes && !DataType.isDecimal(type);
}

/** Returns the indices of rows in the order of a column; nulls come last. */
export function sortedIndices(rows: Table, order: RowOrder | undefined): readonly number[] {
  const indices = Array.from({ length: rows.numRows }, (_, at) => at);
  const values = order && rows.getChild(order.column);
  if (order === undefined || !values) return indices;
  const sign = order.isAscending ? 1 : -1;
  const keys = indices.map((at) => values.get(at) as number | bigint | string | null);
  return indices.toSorted((a, b) => {
    const [first, second] = [keys[a] ?? null, keys[b] ?? null];
    if (first === null || second === null) return Number(first === null) - Number(second === null);
    return first < second ? -sign : first > second ? sign : 0;
  });
}

/** Reads an order from an address: the column, after `-` for a descending one. */
export function orderOf(text: string | undefined): RowOrder | undefined {
  if (!text) return undefined;
  return text.startsWith("-")
    ? { column: text.slice(1), isAscending: false }
    : { column: text.replace(/^\+/, ""), isAscending: true };
}

/** Writes an order for an address. */
export function orderText(order: RowOrder | undefined): string | undefined {
  if (order === undefined) return undefined;
  return `${order.isAscending ? (/^[+-]/.test(order.column) ? "+" : "") : "-"}${order.column}`;
}

/** Returns the order as requests have it. */
export function orderingOf(order: RowOrder | undefined) {
  if (order === undefined) return [];
  return [{ columnName: fieldPath(order.column), ascending: order.isAscending, nullsFirst: false }];
}

/** Longest text that a condition has, in characters. */
const MOST_CHARACTERS = 200;

/** Most columns that a condition names. */
const MOST_COLUMNS = 8;

/** Returns a condition in SQL that a row meets, by its integers, texts and nulls; other rows may meet it, too. */
export function conditionOf(rows: Table, index: number): string {
  const parts = rows.schema.fields.flatMap(({ name, type }, at) => {
    const column = fieldPath(name);
    const value: unknown = rows.getChildAt(at)?.get(index);
    if (DataType.isInt(type) && value !== null) return [`${column} = ${value}`];
    const isText = DataType.isUtf8(type) || DataType.isLargeUtf8(type);
    if (isText && value !== null && String(value).length <= MOST_CHARACTERS)
      return [`${column} = '${String(value).replaceAll("'", "''")}'`];
    return value === null && (isText || DataType.isInt(type)) ? [`${column} IS NULL`] : [];
  });
  return parts.slice(0, MOST_COLUMNS).join(" AND ");
}
