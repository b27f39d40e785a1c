// Tables of any schema: fast-check draws the types, so that it finds the simplest table that fails, and a seed draws the values.
import {
  Binary,
  Bool,
  Data,
  type DataType,
  DateMillisecond,
  Decimal,
  Dictionary,
  Field,
  FixedSizeBinary,
  FixedSizeList,
  Float32,
  Int8,
  Int32,
  Int64,
  LargeBinary,
  LargeUtf8,
  List,
  Map_,
  Null,
  RecordBatch,
  Schema,
  Struct,
  Table,
  TimestampMicrosecond,
  tableFromIPC,
  tableToIPC,
  Uint16,
  Utf8,
  vectorFromArray,
} from "apache-arrow";
import fc from "fast-check";
import type { Random } from "../../test/support/random.ts";
import { END_OF_STREAM } from "./ipc/stream.ts";
import { messagesIn } from "./upload/upload-fixture.ts";

const nullable = (name: string, type: DataType) => new Field(name, type, true);
const entriesOf = (type: DataType) => {
  const fields = [new Field("key", new Utf8(), false), nullable("value", type)];
  return new Field("entries", new Struct<{ key: Utf8; value: DataType }>(fields as never), false);
};

/** Any type that the engine stores, also within lists, structs and maps. */
const { type: types } = fc.letrec<{ type: DataType; leaf: DataType }>((tie) => ({
  type: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    tie("leaf"),
    tie("type").map((type) => new List(nullable("item", type))),
    fc
      .tuple(fc.integer({ min: 1, max: 3 }), tie("type"))
      .map(([size, type]) => new FixedSizeList(size, nullable("item", type))),
    fc
      .array(tie("type"), { minLength: 1, maxLength: 3 })
      .map((fields) => new Struct(fields.map((type, index) => nullable(`f${index}`, type)))),
    tie("type").map((type) => new Map_(entriesOf(type))),
  ),
  leaf: fc.constantFrom<DataType[]>(
    ...[new Int32(), new Int8(), new Uint16(), new Int64(), new Float32(), new Bool(), new Null()],
    ...[new Utf8(), new LargeUtf8(), new Binary(), new LargeBinary(), new FixedSizeBinary(3)],
    ...[new Decimal(2, 20, 128), new DateMillisecond(), new TimestampMicrosecond()],
    new Dictionary(new Utf8(), new Int8(), 1),
  ),
}));

/** Fields of columns of any types. */
export const columns = fc
  .array(types, { maxLength: 4 })
  .map((all) => all.map((type, index) => nullable(`c${index}`, type)));

const WORDS = [["red", "green", ""], ["green"], ["blue", "red", "green", "é"]];
/** Enough for a value of any type. */
const VALUE_BYTES = 16;

/** Returns a table of a single batch, with a dictionary of its own. */
export function randomTable(fields: readonly Field[], rows: number, random: Random): Table {
  const words = vectorFromArray(random.pick(WORDS), new Utf8());
  const bytes = (count: number) => Uint8Array.from({ length: count }, () => random.below(256));

  /** Returns random values of a type, also below nulls. */
  function valuesOf(type: DataType, length: number, mayBeNull: boolean): Data {
    const hasNulls = mayBeNull && random.below(3) > 0;
    const validity = hasNulls ? bytes(Math.ceil((length + 1) / 8)) : undefined;
    const make = (buffers: readonly unknown[], children: Data[] = [], dictionary?: typeof words) =>
      new Data(type, 0, length, hasNulls ? -1 : 0, [...buffers, validity] as never, children, dictionary);
    const childrenOf = (count: number) =>
      type.children.map((field) => valuesOf(field.type, count, field.nullable));

    if (type instanceof Null) return new Data(type, 0, length, length);
    if (type instanceof Dictionary) {
      const indices = Int8Array.from({ length }, () => random.below(words.length));
      return make([undefined, indices], [], words);
    }
    if (type instanceof Struct) return make([undefined, undefined], childrenOf(length));
    if (type instanceof FixedSizeList)
      return make([undefined, undefined], childrenOf(length * type.listSize));
    const ends = [0];
    for (let row = 0; row < length; row++) ends.push((ends[row] as number) + random.pick([0, 0, 1, 3]));
    const end = ends[length] as number;
    if (type instanceof List || type instanceof Map_)
      return make([Int32Array.from(ends), undefined], childrenOf(end));
    const letters = () => Uint8Array.from({ length: end }, () => 97 + random.below(26));
    if (type instanceof Utf8 || type instanceof Binary) return make([Int32Array.from(ends), letters()]);
    if (type instanceof LargeUtf8 || type instanceof LargeBinary)
      return make([BigInt64Array.from(ends, BigInt), letters()]);
    const values = new type.ArrayType(bytes(length * VALUE_BYTES).buffer);
    // The library refuses to return times that are too large for a number.
    const isLong = values instanceof BigInt64Array;
    return make([undefined, isLong ? values.map((value) => value >> 24n) : values]);
  }

  const schema = new Schema([...fields]);
  const children = fields.map(({ type, nullable: mayBeNull }) => valuesOf(type, rows, mayBeNull));
  const all = new Data(new Struct(schema.fields), 0, rows, 0, [] as never, children);
  return new Table([new RecordBatch(schema, all as never)]);
}

/** Returns an Arrow stream of tables, and the text of each row. */
export function streamOf(tables: readonly Table[]) {
  const streams = tables.map((table) => tableToIPC(table, "stream"));
  const parts = streams.map(messagesIn);
  const schema = parts[0]?.schema as Uint8Array;
  const data = parts.flatMap((part) => part.data);
  const rows = streams.flatMap((stream) => rowsIn(tableFromIPC(stream)));
  return { stream: Buffer.concat([schema, ...data, END_OF_STREAM]), parts, rows };
}

/** Returns the text of each row. */
export function rowsIn(table: Table): string[] {
  return table.toArray().map(String);
}
