import type { DataType, Schema } from "apache-arrow";

/** apache-arrow, which is loaded by the first command about the catalog. */
export type Arrow = typeof import("apache-arrow");

/** A column of an answer. */
export interface Column {
  readonly name: string;
  readonly type: (arrow: Arrow) => DataType;
  readonly nullable?: boolean;
}

/** A row, with a value for each column in order. */
export type Row = readonly unknown[];

export const text = (name: string, nullable = false): Column => ({
  name,
  nullable,
  type: ({ Utf8 }) => new Utf8(),
});
export const int32 = (name: string, nullable = false): Column => ({
  name,
  nullable,
  type: ({ Int32 }) => new Int32(),
});
export const uint8 = (name: string): Column => ({ name, type: ({ Uint8 }) => new Uint8() });
export const flag = (name: string, nullable = false): Column => ({
  name,
  nullable,
  type: ({ Bool }) => new Bool(),
});
export const bytes = (name: string): Column => ({ name, type: ({ Binary }) => new Binary() });

/** Rows of a batch. */
const BATCH_ROWS = 1_000;

/** Bytes of the marker that ends a stream. */
const END_BYTES = 8;

/** Returns the encapsulated message of a schema. */
export async function schemaMessage(columns: readonly Column[]): Promise<Uint8Array> {
  const arrow = await import("apache-arrow");
  return schemaMessageOf(arrow, schemaOf(arrow, columns));
}

/** Returns the encapsulated message of a schema. */
export function schemaMessageOf(arrow: Arrow, schema: Schema): Uint8Array {
  const stream = arrow.tableToIPC(new arrow.Table(schema), "stream");
  return stream.subarray(0, messageBytes(stream));
}

/** Yields rows as an Arrow IPC stream without its end. */
export async function* streamOfRows(
  columns: readonly Column[],
  rows: AsyncIterable<Row> | Iterable<Row>,
): AsyncIterable<Uint8Array> {
  const arrow = await import("apache-arrow");
  const schema = schemaOf(arrow, columns);
  const head = schemaMessageOf(arrow, schema);
  yield head;
  let page: Row[] = [];
  for await (const row of rows) {
    page.push(row);
    if (page.length < BATCH_ROWS) continue;
    yield batchOf(page);
    page = [];
  }
  if (page.length > 0) yield batchOf(page);

  function batchOf(all: readonly Row[]): Uint8Array {
    const children = schema.fields.map(
      ({ type }, at) =>
        arrow.vectorFromArray(
          all.map((row) => row[at] ?? null),
          type,
        ).data[0] as never,
    );
    const data = arrow.makeData({ type: new arrow.Struct(schema.fields), length: all.length, children });
    const stream = arrow.tableToIPC(new arrow.Table(schema, [new arrow.RecordBatch(schema, data)]), "stream");
    return stream.subarray(messageBytes(stream), stream.byteLength - END_BYTES);
  }
}

function schemaOf(arrow: Arrow, columns: readonly Column[]): Schema {
  return new arrow.Schema(
    columns.map(({ name, type, nullable = false }) => new arrow.Field(name, type(arrow), nullable)),
  );
}

/** Returns the length of the first message of a stream, which has no body. */
export function messageBytes(stream: Uint8Array): number {
  return 8 + new DataView(stream.buffer, stream.byteOffset).getUint32(4, true);
}
