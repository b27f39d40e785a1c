import type { RecordBatch, Table } from "apache-arrow";
import { readBatches } from "../../arrow/rows/read-batches.ts";
import { createPlainReader } from "./plain-rows.ts";

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
