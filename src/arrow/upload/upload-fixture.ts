import {
  Binary,
  Bool,
  DateMillisecond,
  Dictionary,
  Field,
  FixedSizeBinary,
  FixedSizeList,
  Float32,
  Float64,
  Int8,
  Int32,
  Int64,
  List,
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
import { toIpcFile } from "../ipc/file.ts";
import { END_OF_STREAM, splitIpcFile } from "../ipc/stream.ts";

export const LIMIT = { maxBytes: 10_000_000 };

export async function* split(bytes: Uint8Array, cuts: readonly number[]): AsyncIterable<Uint8Array> {
  const places = [...new Set(cuts.map((cut) => cut % (bytes.byteLength + 1)))].sort((a, b) => a - b);
  let start = 0;
  for (const place of [...places, bytes.byteLength]) {
    yield bytes.subarray(start, place);
    start = place;
  }
}

export async function join(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const chunk of chunks) pieces.push(chunk);
  return Buffer.concat(pieces);
}

export function rowsOf(ipc: Uint8Array): string[] {
  const table = tableFromIPC(ipc);
  return [table.schema.toString(), ...table.toArray().map(String)];
}

export const decode = (base64: string) => Buffer.from(base64, "base64");

/** Columns of many types, of equal length, with nulls. */
export const tables = fc.integer({ min: 0, max: 20 }).chain((length) => {
  const column = <T>(value: fc.Arbitrary<T>) =>
    fc.array(fc.option(value, { freq: 4 }), { minLength: length, maxLength: length });
  // The builders of apache-arrow make the buffers of some types too short when they end in nulls.
  const full = <T>(value: fc.Arbitrary<T>) => fc.array(value, { minLength: length, maxLength: length });
  return fc
    .record({
      int8: column(fc.integer({ min: -128, max: 127 })),
      uint16: column(fc.integer({ min: 0, max: 65_535 })),
      int64: column(fc.bigInt({ min: -(2n ** 62n), max: 2n ** 62n })),
      float: column(fc.double({ noNaN: true })),
      bool: column(fc.boolean()),
      text: column(fc.string()),
      bytes: column(fc.uint8Array()),
      word: column(fc.uint8Array({ minLength: 4, maxLength: 4 })),
      words: column(fc.constantFrom("red", "green", "blue")),
      list: column(fc.array(fc.integer({ min: 0, max: 9 }))),
      vector: full(fc.array(fc.float({ noNaN: true }), { minLength: 3, maxLength: 3 })),
      struct: full(fc.record({ a: fc.integer({ min: 0, max: 9 }), b: fc.string() })),
      time: column(fc.integer({ min: 0, max: 1_000_000 })),
      date: column(fc.date({ noInvalidDate: true, min: new Date(0), max: new Date(2 ** 41) })),
    })
    .map((values) => {
      const item = (type: Int32 | Float32) => new Field("item", type, true);
      return new Table({
        int8: vectorFromArray(values.int8, new Int8()),
        uint16: vectorFromArray(values.uint16, new Uint16()),
        int64: vectorFromArray(values.int64, new Int64()),
        float: vectorFromArray(values.float, new Float64()),
        bool: vectorFromArray(values.bool, new Bool()),
        text: vectorFromArray(values.text, new Utf8()),
        bytes: vectorFromArray(values.bytes, new Binary()),
        word: vectorFromArray(values.word, new FixedSizeBinary(4)),
        words: vectorFromArray(values.words, new Dictionary(new Utf8(), new Int8(), 7)),
        list: vectorFromArray(values.list, new List(item(new Int32()))),
        vector: vectorFromArray(values.vector, new FixedSizeList(3, item(new Float32()))),
        struct: vectorFromArray(
          values.struct,
          new Struct([new Field("a", new Int32(), true), new Field("b", new Utf8(), true)]),
        ),
        time: vectorFromArray(values.time, new TimestampMicrosecond()),
        date: vectorFromArray(values.date, new DateMillisecond()),
      });
    });
});

/** Returns the messages of a stream; a file is a stream between a magic and a footer. */
export function messagesIn(stream: Uint8Array) {
  return splitIpcFile(Buffer.concat([Buffer.from("ARROW1\0\0"), stream]));
}

/** Returns the messages of a table, with those of the schema. */
export async function messagesOf(table: Table) {
  return splitIpcFile(await join(toIpcFile(split(tableToIPC(table, "stream"), []))));
}

/** Returns a stream whose second and fourth batch have another dictionary than the first and third. */
export async function changingDictionaries(index: Int8 | Int32 = new Int32()): Promise<Buffer> {
  const type = new Dictionary(new Utf8(), index, 1);
  const item = new Field("item", new Dictionary(new Utf8(), index, 2), true);
  const batch = (words: string[]) =>
    messagesOf(
      new Table({
        d: vectorFromArray(words, type),
        l: vectorFromArray(
          words.map((word) => [word]),
          new List(item),
        ),
        n: vectorFromArray([1, 2], new Int32()),
      }),
    );
  const [one, other] = [await batch(["a", "b"]), await batch(["x", "a"])];
  return Buffer.concat([one.schema, ...[one, other, one, other].flatMap(({ data }) => data), END_OF_STREAM]);
}
