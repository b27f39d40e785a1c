import type { DataType, Schema, Table, Vector } from "apache-arrow";
import { LanceError } from "../../namespace/errors.ts";
import { fittingVector } from "./fitting.ts";

/** A row as a plain object. */
export type Row = Readonly<Record<string, unknown>>;

type Arrow = typeof import("apache-arrow");

/** Whether data is a list of plain objects. */
export function isRows(data: unknown): data is readonly Row[] {
  return Array.isArray(data) && data.every((row) => isPlainObject(row));
}

/**
 * Converts rows to an Arrow table. Columns of the schema have its types. For any other column, the first value that
 * is not null determines the type: numbers become 64-bit floats, bigints 64-bit integers, dates timestamps, lists of
 * numbers of equal length vectors of 32-bit floats, and lists of strings lists of strings. apache-arrow infers the
 * type of anything else. Pass a table for other types.
 *
 * @param schema schema of the target table. Default: all types are guessed.
 * @throws LanceError InvalidInput, if the rows are empty, a value does not fit its column, or a column that the schema
 *   lacks has only nulls or values of several kinds.
 */
export async function rowsToTable(rows: readonly Row[], schema?: Schema): Promise<Table> {
  const arrow = await import("apache-arrow");
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  if (names.length === 0) {
    throw new LanceError("InvalidInput", "cannot infer a schema without rows; pass an Arrow table");
  }
  const types = new Map(schema?.fields.map((field) => [field.name, field.type]));
  const columns = names.map((name) => {
    const values = rows.map((row) => row[name] ?? null);
    const type = types.get(name);
    return [
      name,
      type === undefined ? column(arrow, name, values) : fittingVector(arrow, name, values, type),
    ];
  });
  return new arrow.Table(Object.fromEntries(columns) as Record<string, Vector>);
}

function column(arrow: Arrow, name: string, values: readonly unknown[]): Vector {
  const sample = values.find((value) => value !== null);
  if (sample === undefined) {
    throw new LanceError(
      "InvalidInput",
      `column ${JSON.stringify(name)} has only nulls; pass an Arrow table`,
    );
  }
  try {
    const type = typeOf(arrow, sample, values);
    return type === undefined ? arrow.vectorFromArray(values) : fittingVector(arrow, name, values, type);
  } catch (cause) {
    if (cause instanceof LanceError) throw cause;
    throw new LanceError("InvalidInput", `column ${JSON.stringify(name)} has values of several kinds`, {
      cause,
    });
  }
}

function typeOf(arrow: Arrow, sample: unknown, values: readonly unknown[]): DataType | undefined {
  if (!values.every((value) => value === null || kindOf(value) === kindOf(sample))) {
    throw new TypeError("mixed kinds");
  }
  switch (kindOf(sample)) {
    case "number":
      return new arrow.Float64();
    case "bigint":
      return new arrow.Int64();
    case "string":
      return new arrow.Utf8();
    case "boolean":
      return new arrow.Bool();
    case "date":
      return new arrow.TimestampMillisecond();
    case "bytes":
      return new arrow.Binary();
    case "strings":
      return new arrow.List(new arrow.Field("item", new arrow.Utf8(), true));
    case "vector": {
      const lengths = new Set(values.filter(isVector).map((vector) => vector.length));
      const item = (type: DataType) => new arrow.Field("item", type, true);
      if (lengths.size > 1) return new arrow.List(item(new arrow.Float64()));
      return new arrow.FixedSizeList([...lengths][0] as number, item(new arrow.Float32()));
    }
    default:
      return undefined;
  }
}

function kindOf(value: unknown): string {
  if (value instanceof Uint8Array) return "bytes";
  if (value instanceof Date) return "date";
  if (Array.isArray(value) && value.length > 0 && value.every((item) => typeof item === "string"))
    return "strings";
  return isVector(value) ? "vector" : typeof value;
}

function isVector(value: unknown): value is readonly number[] {
  if (value instanceof Float32Array || value instanceof Float64Array) return true;
  return Array.isArray(value) && value.length > 0 && value.every((item) => typeof item === "number");
}

function isPlainObject(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
