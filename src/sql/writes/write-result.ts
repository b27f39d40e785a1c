import type { Schema } from "apache-arrow";
import { parseMessageHead, readPrefix } from "../../arrow/ipc/message.ts";
import { END_OF_STREAM } from "../../arrow/ipc/stream.ts";

/** Yields the result of a statement that has changed rows, as messages of an IPC stream without its end. */
export async function* countResult(count: bigint): AsyncIterable<Uint8Array> {
  const arrow = await import("apache-arrow");
  const table = new arrow.Table({ Count: arrow.vectorFromArray([count], new arrow.Int64()) });
  yield arrow.tableToIPC(table, "stream").subarray(0, -END_OF_STREAM.byteLength);
}

/** Returns the schema message of {@link countResult}. */
export async function countSchema(): Promise<Uint8Array> {
  const arrow = await import("apache-arrow");
  return schemaMessage(new arrow.Schema([new arrow.Field("Count", new arrow.Int64(), true)]));
}

/** Returns the schema message of parameters whose types decide themselves. */
export async function parameterSchema(count: number): Promise<Uint8Array> {
  const arrow = await import("apache-arrow");
  const names = Array.from({ length: count }, (_, i) => String(i + 1));
  return schemaMessage(new arrow.Schema(names.map((name) => new arrow.Field(name, new arrow.Null(), true))));
}

/** Returns the rows of a result as a stream without rows, whose columns have the nullability of a new table. */
export async function emptyStream(
  schema: Uint8Array,
  isNullable: (at: number) => boolean,
): Promise<Uint8Array> {
  const arrow = await import("apache-arrow");
  const { fields } = arrow.tableFromIPC(Buffer.concat([schema, END_OF_STREAM])).schema;
  const own = fields.map(({ name, type }, at) => new arrow.Field(name, type, isNullable(at)));
  return arrow.tableToIPC(new arrow.Table(new arrow.Schema(own)), "stream");
}

/** Returns the message of a schema. */
export async function schemaMessage(schema: Schema): Promise<Uint8Array> {
  const arrow = await import("apache-arrow");
  return arrow.tableToIPC(new arrow.Table(schema), "stream").subarray(0, -END_OF_STREAM.byteLength);
}

/** Joins the messages of results with the same columns to those of one result. */
export async function* joined(results: readonly AsyncIterable<Uint8Array>[]): AsyncIterable<Uint8Array> {
  for (const [at, result] of results.entries()) {
    let isSchema = at > 0;
    for await (const message of result) {
      if (!isSchema) yield message;
      isSchema = false;
    }
  }
}

/** Passes the messages of a result on as a whole IPC stream, and counts its rows. */
export async function* countedStream(
  messages: AsyncIterable<Uint8Array>,
  counted: (rows: number) => void,
): AsyncIterable<Uint8Array> {
  for await (const message of messages) {
    counted(rowsIn(message));
    yield message;
  }
  yield END_OF_STREAM;
}

/** Returns the number of rows in an encapsulated message. */
function rowsIn(message: Uint8Array): number {
  const { bytes = 0, metadataLength = 0 } =
    readPrefix(Buffer.from(message.buffer, message.byteOffset, message.byteLength), 0) ?? {};
  return parseMessageHead(message.subarray(bytes, bytes + metadataLength), 0).rows;
}
