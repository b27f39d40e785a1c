import {
  DataType,
  Field,
  List,
  makeBuilder,
  makeData,
  RecordBatch,
  Schema,
  Struct,
  Table,
  tableFromIPC,
  tableToIPC,
  Utf8,
  type Vector,
} from "apache-arrow";
import { type Row, VIEW_KIND, VIEW_PROPERTY } from "../state/row.ts";
import {
  COLUMNS,
  parseProperties,
  type RowBatch,
  type StoredRow,
  type TextColumn,
  textColumn,
  toStored,
} from "../state/rows/stored-row.ts";

/** Key that makes concurrent inserts of an object conflict. */
const PRIMARY_KEY = new Map([["lance-schema:unenforced-primary-key:position", "0"]]);

/** Public schema of `__manifest`, version 2. */
const SCHEMA = new Schema([
  new Field("object_id", new Utf8(), false, PRIMARY_KEY),
  new Field("object_type", new Utf8(), false),
  new Field("location", new Utf8(), true),
  new Field("metadata", new Utf8(), true),
  new Field("base_objects", new List(new Field("object_id", new Utf8(), true)), true),
]);

/** The engine's column of row addresses: the fragment in the upper half of 64 bits, the offset in the lower one. */
export const ADDRESS_COLUMN = "_rowaddr";

/** Column of ids. */
export const ID_COLUMN = "object_id";

/** Columns that are read. */
export const ROW_COLUMNS = [ID_COLUMN, "object_type", "location", "metadata", ADDRESS_COLUMN];

/** Encodes rows as an Arrow IPC file with the schema of `__manifest`. */
export function encodeRows(rows: readonly Row[]): Buffer {
  return encode(rows.map(toStored), SCHEMA);
}

/** Encodes stored rows as an Arrow IPC file, with the columns that every commit writes. */
export function encodeStoredRows(rows: readonly StoredRow[]): Buffer {
  return encode(rows, new Schema(SCHEMA.fields.filter(({ name }) => Object.hasOwn(COLUMNS, name))));
}

function encode(rows: readonly StoredRow[], schema: Schema): Buffer {
  const children = schema.fields.map((field) => {
    const builder = makeBuilder({ type: field.type, nullValues: [null] });
    const textOf = (COLUMNS as Readonly<Record<string, (row: StoredRow) => string | undefined>>)[field.name];
    for (const row of rows) builder.append(textOf?.(row) ?? null);
    return builder.finish().flush();
  });
  const data = makeData({ type: new Struct(schema.fields), length: rows.length, nullCount: 0, children });
  const file = tableToIPC(new Table(schema, new RecordBatch(schema, data)), "file");
  return Buffer.from(file.buffer, file.byteOffset, file.byteLength);
}

/**
 * Decodes a batch, an Arrow IPC file with the columns {@link ROW_COLUMNS}, without creating row objects.
 *
 * Other implementations may lay out texts differently, for example as dictionaries; these are converted.
 */
export function decodeBatch(ipcFile: Uint8Array): RowBatch {
  const table = tableFromIPC(ipcFile);
  const text = (name: string) => toTextColumn(table.getChild(name), table.numRows);
  const metadata = text("metadata");
  return {
    length: table.numRows,
    objectId: text("object_id"),
    objectType: withViews(text("object_type"), metadata, table.numRows),
    location: inPlainSpelling(text("location"), table.numRows),
    metadata,
    addresses: decodeAddresses(table),
  };
}

/** Decodes the ids of a batch with {@link ID_COLUMN}. */
export function decodeIds(ipcFile: Uint8Array): string[] {
  return [...(tableFromIPC(ipcFile).getChild(ID_COLUMN) ?? [])];
}

/** Decodes the addresses of a batch with {@link ADDRESS_COLUMN}: the offset and the fragment of each row. */
export function decodeAddressBatch(ipcFile: Uint8Array): Uint32Array {
  return decodeAddresses(tableFromIPC(ipcFile));
}

function decodeAddresses(table: Table): Uint32Array {
  const numbers = table.getChild(ADDRESS_COLUMN)?.toArray() as BigUint64Array | undefined;
  if (numbers === undefined) throw new Error(`the engine left out ${ADDRESS_COLUMN}`);
  // The engine's numbers are little endian on every machine that it supports.
  return new Uint32Array(numbers.buffer, numbers.byteOffset, numbers.length * 2);
}

const SLASH = 0x2f;

/** Returns the kinds of rows, of which namespaces with the query of a view are views. */
function withViews(kinds: TextColumn, metadata: TextColumn, length: number): TextColumn {
  const { bytes, offsets } = metadata;
  const all = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (!all.subarray(offsets[0], offsets[length]).includes(VIEW_PROPERTY)) return kinds;
  const properties = textsOf(metadata, length);
  return textColumn(
    textsOf(kinds, length).map((kind, i) =>
      kind === "namespace" && Object.hasOwn(parseProperties(properties[i] ?? "{}"), VIEW_PROPERTY)
        ? VIEW_KIND
        : kind,
    ),
  );
}

function textsOf({ bytes, offsets, isNull }: TextColumn, length: number): (string | undefined)[] {
  return Array.from({ length }, (_, i) =>
    isNull(i) ? undefined : Buffer.from(bytes.subarray(offsets[i], offsets[i + 1])).toString(),
  );
}

/** Returns locations as {@link plainLocation} does; nearly all are names without a slash. */
function inPlainSpelling(column: TextColumn, length: number): TextColumn {
  const { bytes, offsets } = column;
  if (!bytes.subarray(offsets[0], offsets[length]).includes(SLASH)) return column;
  const texts = textsOf(column, length);
  return texts.every((text) => text === undefined || plainLocation(text) === text)
    ? column
    : textColumn(texts.map((text) => text && plainLocation(text)));
}

function toTextColumn(column: Vector | null, length: number): TextColumn {
  const data = column?.data[0];
  if (column === null || data === undefined) return textColumn(Array.from({ length }, () => undefined));
  if (column.data.length > 1 || !DataType.isUtf8(data.type)) return textColumn([...column]);
  return {
    bytes: data.values as Uint8Array,
    offsets: data.valueOffsets as Int32Array,
    isNull: data.nullCount === 0 ? () => false : (index) => !data.getValid(index),
  };
}

/**
 * Returns a location in its plain spelling, without empty parts and single dots. Other programs put rows with any spelling, and two
 * spellings of a directory must be equal: otherwise the drop of one row removes the directory of the other.
 */
export function plainLocation(location: string): string {
  if (location.startsWith("/") || location.includes("://")) return location;
  const parts = location.split("/").filter((part) => part !== "" && part !== ".");
  // The base itself has none.
  return parts.length === 0 ? location : parts.join("/");
}
