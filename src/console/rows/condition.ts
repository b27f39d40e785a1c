import { DataType, type Table } from "apache-arrow";
import { fieldPath } from "../table/index-types.ts";

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
