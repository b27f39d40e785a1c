import type { RecordBatch, Table } from "apache-arrow";
import { LanceError } from "../namespace/errors.ts";

/**
 * The rows of a query, one Arrow record batch after the other. The query runs when they are asked for, once for each
 * time; whoever leaves a loop early ends it.
 */
export interface QueryResult extends AsyncIterable<RecordBatch> {
  /** The rows as Arrow IPC, cut anywhere and not decoded: a stream, or a file from servers that have no streams. */
  bytes(): AsyncIterable<Uint8Array>;
  /** All rows as one Arrow table. */
  toTable(): Promise<Table>;
  /** All rows as plain objects: lists as arrays, 64-bit integers as bigint. */
  toArray(): Promise<Record<string, unknown>[]>;
}

/** Makes a result from a function that runs the query. apache-arrow is loaded when rows are decoded. */
export function createQueryResult(bytes: () => AsyncIterable<Uint8Array>): QueryResult {
  async function* batches(): AsyncIterator<RecordBatch> {
    const { RecordBatchReader } = await import("apache-arrow");
    const source = bytes()[Symbol.asyncIterator]();
    let failure: unknown;
    // The reader takes a failure of its source for the end of the stream in places; it is kept for afterwards.
    async function* watched() {
      try {
        yield* { [Symbol.asyncIterator]: () => source };
      } catch (thrown) {
        failure = thrown;
        throw thrown;
      }
    }
    try {
      const reader = await RecordBatchReader.from(watched());
      for await (const batch of reader) yield batch;
    } catch (thrown) {
      throw failure ?? undecodable(thrown);
    } finally {
      await source.return?.();
    }
    if (failure !== undefined) throw failure;
  }

  const iterable = { [Symbol.asyncIterator]: batches };

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
    toArray: async () => (await toTable()).toArray().map((row) => plain(row) as Record<string, unknown>),
  };
}

function undecodable(thrown: unknown): unknown {
  if (thrown instanceof LanceError) return thrown;
  const text = thrown instanceof Error ? thrown.message : String(thrown);
  return new LanceError("Internal", `the rows of the answer cannot be decoded: ${text}`, { cause: thrown });
}

/** A value of Arrow as plain JavaScript. */
function plain(value: unknown): unknown {
  if (value === null || typeof value !== "object") return value;
  if (value instanceof Uint8Array || value instanceof Date) return value;
  if ("toJSON" in value && typeof value.toJSON === "function") value = value.toJSON();
  if (typeof value !== "object" || value === null) return value;
  if (Symbol.iterator in value) return Array.from(value as Iterable<unknown>, plain);
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, plain(item)]));
}
