import type { DataType, Schema } from "apache-arrow";

type Arrow = typeof import("apache-arrow");

/** A column of a new table, as a form has it. */
export interface Column {
  readonly name: string;
  readonly type: ColumnType;
  /** Numbers in a vector. */
  readonly dimension: number;
}

const TYPES = {
  text: (arrow: Arrow) => new arrow.Utf8(),
  integer: (arrow: Arrow) => new arrow.Int64(),
  number: (arrow: Arrow) => new arrow.Float64(),
  "true or false": (arrow: Arrow) => new arrow.Bool(),
  time: (arrow: Arrow) => new arrow.TimestampMicrosecond("UTC"),
  vector: (arrow: Arrow, dimension: number) =>
    new arrow.FixedSizeList(dimension, new arrow.Field("item", new arrow.Float32(), true)),
  bytes: (arrow: Arrow) => new arrow.Binary(),
} as const satisfies Readonly<Record<string, (arrow: Arrow, dimension: number) => DataType>>;

/** Type of a column, in a word. */
export type ColumnType = keyof typeof TYPES;

export const COLUMN_TYPES = Object.keys(TYPES) as readonly ColumnType[];

/** Returns the Arrow schema of columns. */
export function schemaOf(arrow: Arrow, columns: readonly Column[]): Schema {
  return new arrow.Schema(
    columns.map(({ name, type, dimension }) => new arrow.Field(name, TYPES[type](arrow, dimension), true)),
  );
}
