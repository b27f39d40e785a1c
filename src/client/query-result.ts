import type { RecordBatch, Table } from "apache-arrow";
import { LanceError } from "../namespace/errors.ts";

/**
 * The rows of a query, as Arrow record batches. Each iteration runs the query again; leaving the loop early ends it.
 */
export interface QueryResult extends AsyncIterable<RecordBatch> {
  /** Yields the rows as Arrow IPC, cut anywhere and not decoded: a stream, or a file from servers without streams. */
  bytes(): AsyncIterable<Uint8Array>;
  /** Returns all rows as an Arrow table. */
  toTable(): Promise<Table>;
  /** Returns all rows as plain objects: lists as arrays, 64-bit integers as bigint. */
  toArray(): Promise<Record<string, unknown>[]>;
}

/** Creates a result from a function that runs the query. It loads apache-arrow to decode rows. */
export function createQueryResult(bytes: () => AsyncIterable<Uint8Array>): QueryResult {
  async function* batches(): AsyncIterator<RecordBatch> {
    const { RecordBatchReader } = await import("apache-arrow");
    const source = bytes()[Symbol.asyncIterator]();
    let failure: unknown;
    // The reader sometimes treats a failure of its source as the end of the stream; this keeps the failure for later.
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

/** Converts a value of Arrow to plain JavaScript. */
function plain(value: unknown): unknown {
  if (value === null || typeof value !== "object") return value;
  if (value instanceof Uint8Array || value instanceof Date) return value;
  if ("toJSON" in value && typeof value.toJSON === "function") value = value.toJSON();
  if (typeof value !== "object" || value === null) return value;
  if (Symbol.iterator in value) return Array.from(value as Iterable<unknown>, plain);
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, plain(item)]));
}
