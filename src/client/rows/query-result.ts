import type { DataType, RecordBatch, Table, Timestamp } from "apache-arrow";
import { readBatches } from "../../arrow/rows/read-batches.ts";
import { createRowReader, type ReadItems } from "../../arrow/rows/row-reader.ts";
import { decimalText } from "../../arrow/rows/row-texts.ts";

/**
 * The rows of a query, as Arrow record batches. Each iteration runs the query again; leaving the loop early ends it.
 */
export interface QueryResult extends AsyncIterable<RecordBatch> {
  /** Yields the rows as Arrow IPC, cut anywhere and not decoded: a stream, or a file from servers without streams. */
  bytes(): AsyncIterable<Uint8Array>;
  /** Returns all rows as an Arrow table. */
  toTable(): Promise<Table>;
  /**
   * Returns all rows as plain objects: lists as arrays, 64-bit integers as bigint, decimals as texts, dates and times as Dates, and times of a
   * finer unit than milliseconds as nanoseconds since 1970 in a bigint. A table takes these values again without a loss.
   */
  toArray(): Promise<Record<string, unknown>[]>;
}

/** Creates a result from a function that runs the query. It loads apache-arrow to decode rows. */
export function createQueryResult(bytes: () => AsyncIterable<Uint8Array>): QueryResult {
  const iterable = { [Symbol.asyncIterator]: () => readBatches(bytes()) };

  async function toTable(): Promise<Table> {
    const { Table } = await import("apache-arrow");
    const all: RecordBatch[] = [];
    for await (const batch of iterable) all.push(batch);
    return new Table(all);
  }

  return {
    ...iterable,
    bytes,
    toTable,
    async toArray() {
      const read = createPlainReader(await import("apache-arrow"));
      const rows: Record<string, unknown>[] = [];
      for await (const batch of iterable) for (const row of read(batch)) rows.push(row);
      return rows;
    },
  };
}

type Arrow = typeof import("apache-arrow");

/** Nanoseconds of the units of time, in the order of the library's units. */
const UNITS = [1_000_000_000n, 1_000_000n, 1_000n, 1n] as const;

/** Creates a reader of rows as plain objects, whose values go into a table again without a loss. */
function createPlainReader(arrow: Arrow): (batch: RecordBatch) => Iterable<Record<string, unknown>> {
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
