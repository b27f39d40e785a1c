import type { DataType, RecordBatch, Timestamp } from "apache-arrow";
import { createRowReader, type ReadItem } from "./row-reader.ts";
import { decimalText } from "./text/decimal-text.ts";

type Arrow = typeof import("apache-arrow");

/** Nanoseconds of the units of time, in the order of the library's units. */
const UNITS = [1_000_000_000n, 1_000_000n, 1_000n, 1n] as const;

/** Creates a reader of rows as plain objects, whose values go into a table again without a loss. */
export function createPlainReader(arrow: Arrow): (batch: RecordBatch) => Iterable<Record<string, unknown>> {
  return createRowReader(arrow, readerOfValue);
}

function readerOfValue({ DataType: Is }: Arrow, type: DataType): ReadItem {
  if (Is.isTimestamp(type)) return readTime(type);
  if (Is.isDate(type)) return (column, index) => new Date(Number(column.get(index)));
  if (Is.isDecimal(type)) return (column, index) => decimalText(column.get(index), type.scale);
  return (column, index) => plain(column.get(index));
}

/** Reads a time as a Date, or as nanoseconds since 1970 where a Date lacks the digits or the years. */
function readTime({ unit }: Timestamp): ReadItem {
  const nanos: bigint = UNITS[unit];
  return (column, index) => {
    const value = BigInt(column.data[0]?.values[index]) * nanos;
    const date = new Date(Number(value / UNITS[1]));
    return nanos < UNITS[1] || Number.isNaN(date.getTime()) ? value : date;
  };
}

/** Converts a value of Arrow to plain JavaScript. */
function plain(value: unknown): unknown {
  if (value === null || typeof value !== "object") return value;
  if (value instanceof Uint8Array || value instanceof Date) return value;
  if ("toJSON" in value && typeof value.toJSON === "function") value = value.toJSON();
  if (typeof value !== "object" || value === null) return value;
  if (Symbol.iterator in value) return Array.from(value as Iterable<unknown>, plain);
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, plain(item)]));
}
