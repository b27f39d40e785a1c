import { serialize } from "node:v8";
import {
  type Data,
  Field,
  FixedSizeList,
  Float32,
  Int32,
  LargeBinary,
  makeData,
  RecordBatch,
  Schema,
  Struct,
  Table,
  type TypeMap,
  tableFromIPC,
  tableToIPC,
  Uint8,
  Uint32,
  Uint64,
  Utf8,
  vectorFromArray,
} from "apache-arrow";

/** A row of the table that most tests write. */
export interface Person {
  readonly id: number;
  readonly name: string | null;
  readonly vector: readonly [number, number];
}

const vectorType = new FixedSizeList(2, new Field("item", new Float32(), true));

/** The schema of {@link Person}. */
export const PERSON_SCHEMA = new Schema([
  new Field("id", new Int32(), false),
  new Field("name", new Utf8(), true),
  new Field("vector", vectorType, true),
]);

/**
 * Returns `count` people whose ids count up from `first` and whose vectors are points of a line, in the order of the
 * ids.
 */
export function people(count: number, first = 0): Person[] {
  return Array.from({ length: count }, (_, index) => {
    const id = first + index;
    return { id, name: `p${id}`, vector: [id, 0] };
  });
}

function table(rows: readonly Person[]): Table {
  if (rows.length === 0) return new Table(PERSON_SCHEMA);
  const column = <K extends keyof Person>(name: K) => rows.map((row) => row[name]);
  return new Table(PERSON_SCHEMA, {
    id: vectorFromArray(column("id"), new Int32()),
    name: vectorFromArray(column("name"), new Utf8()),
    vector: vectorFromArray(column("vector"), vectorType),
  });
}

/** Most rows of a stream that {@link personStream} keeps. */
const FEW_ROWS = 20;
/** Encoded rows: thousands of calls write the same few, and Arrow takes long for each. */
const encoded = new Map<string, Uint8Array>();

/** Encodes rows as an Arrow IPC stream in one batch; without rows it has only a schema. */
export function personStream(rows: readonly Person[]): Uint8Array {
  const encode = () => tableToIPC(table(rows), "stream");
  if (rows.length > FEW_ROWS) return encode();
  // Not JSON, in which numbers such as NaN are null.
  const key = serialize(rows).toString("latin1");
  const stream = encoded.get(key) ?? encode();
  encoded.set(key, stream);
  return stream.slice();
}

/** Encodes rows as an Arrow IPC file. */
export function personFile(rows: readonly Person[]): Uint8Array {
  return tableToIPC(table(rows), "file");
}

/** Encodes a row with a blob that refers to a file, as clients send it or as the engine stores it, as an Arrow IPC stream. */
export function blobStream(uri: string, isStored = false): Uint8Array {
  const columns = {
    ...(isStored && { kind: vectorFromArray([3], new Uint8()) }),
    data: vectorFromArray([null], new LargeBinary()),
    uri: vectorFromArray([uri], new Utf8()),
    ...(isStored && { blob_id: vectorFromArray([null], new Uint32()) }),
    ...(isStored && { blob_size: vectorFromArray([null], new Uint64()) }),
    ...(isStored && { position: vectorFromArray([null], new Uint64()) }),
  };
  const fields = Object.entries(columns).map(([name, { type }]) => new Field(name, type, true));
  const parts = new Struct<TypeMap>(fields);
  const schema = new Schema([
    new Field("blob", parts, true, new Map([["ARROW:extension:name", "lance.blob.v2"]])),
  ]);
  const children = Object.values(columns).map(({ data }) => data[0] as Data);
  const blob = makeData({ type: parts, length: 1, children });
  const rows = makeData({ type: new Struct<TypeMap>(schema.fields), length: 1, children: [blob] });
  return tableToIPC(new Table(schema, [new RecordBatch(schema, rows)]), "stream");
}

/** Returns an Arrow IPC stream with another schema than {@link PERSON_SCHEMA}. */
export function otherStream(): Uint8Array {
  const schema = new Schema([new Field("unrelated", new Utf8(), false)]);
  return tableToIPC(new Table(schema, { unrelated: vectorFromArray(["x"], new Utf8()) }), "stream");
}

/** Returns an Arrow IPC stream of at least `bytes` bytes: one column of numbers that count up. */
export function wideStream(bytes: number): Uint8Array {
  const values = new Int32Array(Math.ceil(bytes / 4)).map((_, index) => index);
  const schema = new Schema([new Field("id", new Int32(), false)]);
  return tableToIPC(new Table(schema, { id: vectorFromArray(values) as never }), "stream");
}

/**
 * Returns a body of exactly `bytes` bytes, a multiple of eight: an Arrow IPC stream without rows, whose schema is followed by
 * zeros, or the beginning of it.
 */
export function paddedStream(bytes: number): Uint8Array {
  const stream = Buffer.from(personStream([]));
  const padding = Buffer.alloc(Math.max(0, bytes - stream.byteLength));
  const length = stream.readUInt32LE(4);
  stream.writeUInt32LE(length + padding.byteLength, 4);
  const end = 8 + length;
  return Buffer.concat([stream.subarray(0, end), padding, stream.subarray(end)]).subarray(0, bytes);
}

/** Returns the rows of an Arrow IPC stream or file as plain values: 64-bit integers as numbers, lists as arrays. */
export function rowsOf(bytes: Uint8Array): Record<string, unknown>[] {
  return tableFromIPC(bytes)
    .toArray()
    .map((row) => plain(row.toJSON()) as Record<string, unknown>);
}

/** Returns the column names of an Arrow IPC stream or file, in order. */
export function columnsOf(bytes: Uint8Array): string[] {
  return tableFromIPC(bytes).schema.fields.map((field) => field.name);
}

/** Whether the bytes are an Arrow IPC file rather than a stream. */
export function isArrowFile(bytes: Uint8Array): boolean {
  const magic = Buffer.from("ARROW1");
  return Buffer.from(bytes.subarray(0, 6)).equals(magic) && Buffer.from(bytes.subarray(-6)).equals(magic);
}

/** Cuts bytes into pieces of the given size, as a network would. */
export async function* cut(bytes: Uint8Array, size: number): AsyncIterable<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += size) yield bytes.subarray(at, at + size);
}

function plain(value: unknown): unknown {
  if (typeof value === "bigint") return Number(value);
  if (value === null || typeof value !== "object") return value;
  if (Symbol.iterator in value) return [...(value as Iterable<unknown>)].map(plain);
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plain(item)]));
}
