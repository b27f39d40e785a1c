import type { RecordBatch, Schema, Table } from "apache-arrow";
import { LanceError } from "../../namespace/errors.ts";
import { isRows, type Row, rowsToTable } from "./rows.ts";

/** An Arrow IPC stream, cut anywhere. */
export type ArrowBytes = Uint8Array | AsyncIterable<Uint8Array> | Blob;

/**
 * Rows for an upload: an Arrow IPC stream as bytes, a table or record batches of apache-arrow, or plain objects,
 * which get the schema of the table or a guessed schema ({@link rowsToTable}).
 */
export type ArrowData =
  | ArrowBytes
  | Table
  | Iterable<RecordBatch>
  | AsyncIterable<RecordBatch>
  | readonly Row[];

/**
 * Yields the Arrow IPC stream of an upload. It encodes batches one by one as they are requested.
 *
 * @param findSchema returns the schema that plain objects must fit. Default: the schema is guessed.
 * @throws LanceError InvalidInput, if the data has none of the forms of {@link ArrowData}.
 */
export async function* toIpcStream(
  data: ArrowData,
  findSchema?: () => Promise<Schema | undefined>,
): AsyncIterable<Uint8Array> {
  if (typeof data !== "object" || data === null) throw unfit();
  if (data instanceof Uint8Array) yield data;
  else if (data instanceof Blob) yield* data.stream();
  else if (isTable(data)) yield* encode(data.batches, data);
  else if (isRows(data)) {
    const table = await rowsToTable(data, await findSchema?.());
    yield* encode(table.batches, table);
  } else if (isIterable(data)) yield* mixed(data);
  else throw unfit();
}

function unfit(): LanceError {
  return new LanceError(
    "InvalidInput",
    "rows must be Arrow IPC bytes, an Arrow table, record batches or objects",
  );
}

/** Passes bytes on and encodes batches; the first item decides between them. */
async function* mixed(
  items: Iterable<RecordBatch> | AsyncIterable<Uint8Array | RecordBatch>,
): AsyncIterable<Uint8Array> {
  const iterator = (
    Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]()
  ) as AsyncIterator<Uint8Array | RecordBatch>;
  try {
    const first = await iterator.next();
    if (first.done) return;
    const all = resume(first.value, iterator);
    if (first.value instanceof Uint8Array) yield* all as AsyncIterable<Uint8Array>;
    else yield* encode(all as AsyncIterable<RecordBatch>);
  } finally {
    await iterator.return?.();
  }
}

async function* resume<T>(first: T, iterator: AsyncIterator<T>): AsyncIterable<T> {
  yield first;
  for (let next = await iterator.next(); !next.done; next = await iterator.next()) yield next.value;
}

async function* encode(
  batches: Iterable<RecordBatch> | AsyncIterable<RecordBatch>,
  table?: Table,
): AsyncIterable<Uint8Array> {
  const { RecordBatchStreamWriter, util } = await import("apache-arrow");
  let chunks: Uint8Array[] = [];
  class Encoder extends RecordBatchStreamWriter {
    protected override _write(chunk: ArrayBufferView): this {
      // Encoded buffers may be views of the batch itself, whose memory must stay.
      chunks.push(new Uint8Array(chunk.buffer as ArrayBuffer, chunk.byteOffset, chunk.byteLength));
      return this;
    }
  }
  function* taken() {
    const ready = chunks;
    chunks = [];
    yield* ready;
  }
  const writer = new Encoder({ autoDestroy: false });
  let schema = table?.schema;
  // Without a batch the stream still has the schema.
  if (schema !== undefined) writer.reset(undefined, schema);
  for await (const batch of batches) {
    schema ??= batch.schema;
    if (!util.compareSchemas(schema, batch.schema)) {
      throw new LanceError("InvalidInput", "the record batches do not all have the same schema");
    }
    writer.write(batch);
    yield* taken();
  }
  writer.finish();
  yield* taken();
}

function isTable(data: object): data is Table {
  return "schema" in data && "batches" in data && Array.isArray(data.batches);
}

function isIterable(data: object): data is Iterable<RecordBatch> | AsyncIterable<Uint8Array | RecordBatch> {
  return Symbol.asyncIterator in data || Symbol.iterator in data;
}
