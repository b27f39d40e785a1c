import type { DataType, RecordBatch, Timestamp } from "apache-arrow";
import { decimalText } from "../../arrow/rows/decimal-text.ts";
import { createRowReader, type ReadItems } from "../../arrow/rows/row-reader.ts";

type Arrow = typeof import("apache-arrow");

/** Nanoseconds of the units of time, in the order of the library's units. */
const UNITS = [1_000_000_000n, 1_000_000n, 1_000n, 1n] as const;

/** Creates a reader of rows as plain objects, whose values go into a table again without a loss. */
export function createPlainReader(arrow: Arrow): (batch: RecordBatch) => Iterable<Record<string, unknown>> {
  return createRowReader(arrow, {
    ofType: readerOfValue,
    ofList: (item, start, length) => Array.from({ length }, (_, at) => item(start + at)),
  });
}

function readerOfValue(arrow: Arrow, type: DataType): ReadItems {
  const { DataType: Is } = arrow;
  if (Is.isTimestamp(type)) return readTimes(type);
  return (data) => {
    const vector = arrow.makeVector(data);
    if (Is.isDate(type)) return (index) => new Date(Number(vector.get(index)));
    if (Is.isDecimal(type)) return (index) => decimalText(vector.get(index), type.scale);
    return (index) => plain(vector.get(index));
  };
}

/** Reads times as Dates, or as nanoseconds since 1970 where a Date lacks the digits or the years. */
function readTimes({ unit }: Timestamp): ReadItems {
  const nanos: bigint = UNITS[unit];
  return ({ values }) =>
    (index) => {
      const value = BigInt(values[index]) * nanos;
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
