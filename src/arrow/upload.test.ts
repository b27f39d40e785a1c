import assert from "node:assert/strict";
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
  RecordBatchStreamWriter,
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
import { test } from "vitest";
import { isLanceError, LanceError } from "../namespace/errors.ts";
import { toIpcFile } from "./file.ts";
import { PYARROW_STREAMS } from "./fixtures.ts";
import { schemaTable } from "./message.ts";
import { createPartBufferPool } from "./part-buffer.ts";
import { END_OF_STREAM, splitIpcFile } from "./stream.ts";
import { collectUpload, readUpload } from "./upload.ts";

const LIMIT = { maxBytes: 10_000_000 };

async function* split(bytes: Uint8Array, cuts: readonly number[]): AsyncIterable<Uint8Array> {
  const places = [...new Set(cuts.map((cut) => cut % (bytes.byteLength + 1)))].sort((a, b) => a - b);
  let start = 0;
  for (const place of [...places, bytes.byteLength]) {
    yield bytes.subarray(start, place);
    start = place;
  }
}

async function join(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const chunk of chunks) pieces.push(chunk);
  return Buffer.concat(pieces);
}

function rowsOf(ipc: Uint8Array): string[] {
  const table = tableFromIPC(ipc);
  return [table.schema.toString(), ...table.toArray().map(String)];
}

const decode = (base64: string) => Buffer.from(base64, "base64");

/** Columns of many types, of equal length, with nulls. */
const tables = fc.integer({ min: 0, max: 20 }).chain((length) => {
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
      bool: full(fc.boolean()),
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

test("a stream becomes a file with the same rows, however it is split", async () => {
  await fc.assert(
    fc.asyncProperty(tables, fc.array(fc.nat()), async (table, cuts) => {
      const stream = tableToIPC(table, "stream");
      const { file, rows } = await collectUpload(split(stream, cuts), LIMIT);
      assert.equal(rows, table.numRows);
      assert.deepEqual(rowsOf(file), rowsOf(stream));
      assert.deepEqual(rowsOf(await join(toIpcFile(split(stream, cuts)))), rowsOf(stream));
    }),
    { numRuns: 60 },
  );
});

/** Yields the messages of a stream, each in memory of its own that is overwritten when the next one is requested. */
async function* borrowed(stream: Uint8Array): AsyncIterable<Uint8Array> {
  const { schema, data } = splitIpcFile(await join(toIpcFile(split(stream, []))));
  for (const message of [schema, ...data, END_OF_STREAM]) {
    const chunk = new Uint8Array(message);
    yield chunk;
    chunk.buffer.transfer(0);
  }
}

test("a stream becomes a file although its chunks do not last", async () => {
  const large = new Table({ id: vectorFromArray(Int32Array.from({ length: 50_000 }, (_, i) => i)) });
  const words = new Table({
    d: vectorFromArray(["a", "b", "a"], new Dictionary(new Utf8(), new Int32(), 1)),
  });
  for (const table of [large, words]) {
    const stream = tableToIPC(table, "stream");
    const pieces: Buffer[] = [];
    for await (const chunk of toIpcFile(borrowed(stream))) pieces.push(Buffer.from(chunk));
    assert.deepEqual(rowsOf(Buffer.concat(pieces)), rowsOf(stream));
  }
});

test("a file is accepted as an upload, and passes the streaming conversion unchanged", async () => {
  await fc.assert(
    fc.asyncProperty(tables, fc.array(fc.nat()), async (table, cuts) => {
      const file = tableToIPC(table, "file");
      assert.deepEqual(rowsOf((await collectUpload(split(file, cuts), LIMIT)).file), rowsOf(file));
      assert.deepEqual(await join(toIpcFile(split(file, cuts))), Buffer.from(file));
    }),
    { numRuns: 20 },
  );
});

/** Returns the messages of a table, with those of the schema. */
async function messagesOf(table: Table) {
  return splitIpcFile(await join(toIpcFile(split(tableToIPC(table, "stream"), []))));
}

test("a file is taken apart into a stream", async () => {
  const file = await join(toIpcFile(split(decode(PYARROW_STREAMS.zstd), [])));
  const { schema, data } = splitIpcFile(file);
  assert.deepEqual(Buffer.concat([schema, ...data, END_OF_STREAM]), decode(PYARROW_STREAMS.zstd));
});

test("the padding of the engine's files is skipped", async () => {
  const table = new Table({ id: vectorFromArray([1, 2, 3], new Int32()) });
  const plain = await join(toIpcFile(split(tableToIPC(table, "stream"), [])));
  const file = Buffer.concat([plain.subarray(0, 8), new Uint8Array(56), plain.subarray(8)]);
  const { schema, data } = splitIpcFile(file);
  assert.deepEqual(rowsOf(Buffer.concat([schema, ...data, END_OF_STREAM])), rowsOf(plain));
});

test("several batches and repeated dictionaries make one file", async () => {
  const type = new Dictionary(new Utf8(), new Int32(), 1);
  const batch = new Table({ d: vectorFromArray(["a", "b"], type) });
  const { schema, data } = await messagesOf(batch);
  const stream = Buffer.concat([schema, ...data, ...data, END_OF_STREAM]);
  const file = await join(toIpcFile(split(stream, [100])));
  assert.deepEqual(tableFromIPC(file).toArray().map(String), [
    '{"d": "a"}',
    '{"d": "b"}',
    '{"d": "a"}',
    '{"d": "b"}',
  ]);
});

/** Returns a stream whose second and fourth batch have another dictionary than the first and third. */
async function changingDictionaries(index: Int8 | Int32 = new Int32()): Promise<Buffer> {
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

test("another dictionary is added to the one before in a file, and its indices are moved", async () => {
  for (const index of [new Int8(), new Int32()]) {
    const stream = await changingDictionaries(index);
    const words = [...(tableFromIPC(stream).getChild("n") ?? [])].length;
    assert.equal(words, 8);
    const file = tableFromIPC(await join(toIpcFile(split(stream, [100, 333]))));
    assert.deepEqual([...(file.getChild("d") ?? [])], ["a", "b", "x", "a", "a", "b", "x", "a"]);
    const lists = [...(file.getChild("l") ?? [])].map((list) => [...list]);
    assert.deepEqual(lists, [["a"], ["b"], ["x"], ["a"], ["a"], ["b"], ["x"], ["a"]]);
  }
});

test("indices that are too small for all dictionaries together are refused", async () => {
  const type = new Dictionary(new Utf8(), new Int8(), 1);
  const words = (prefix: string) => Array.from({ length: 100 }, (_, i) => `${prefix}${i}`);
  const [one, other] = await Promise.all(
    ["a", "b"].map((prefix) => messagesOf(new Table({ d: vectorFromArray(words(prefix), type) }))),
  );
  const stream = Buffer.concat([one?.schema, ...(one?.data ?? []), ...(other?.data ?? [])] as Uint8Array[]);
  await assert.rejects(join(toIpcFile(split(stream, []))), (error) => isLanceError(error, "Unsupported"));
});

test("an upload is cut into files of whole batches, with schema and dictionaries in each", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(tables, { minLength: 1, maxLength: 4 }),
      fc.array(fc.nat()),
      fc.nat(3000),
      async (parts, cuts, partBytes) => {
        const messages = await Promise.all(parts.map(messagesOf));
        const data = messages.flatMap((message) => message.data);
        const stream = Buffer.concat([messages[0]?.schema as Uint8Array, ...data, END_OF_STREAM]);
        const found: string[] = [];
        let [rows, bytes, more] = [0, 0, 0];
        let last = false;
        const hold = (unpacked: number) => {
          more += unpacked;
        };
        for await (const part of readUpload(split(stream, cuts), { ...LIMIT, partBytes, hold })) {
          assert.equal(last, false);
          found.push(...rowsOf(part.file).slice(1));
          rows += part.rows;
          bytes += part.heldBytes;
          last = part.last;
        }
        assert.equal(last, true);
        assert.equal(bytes, stream.byteLength + more);
        assert.equal(rows, found.length);
        assert.deepEqual(
          found,
          parts.flatMap((part) => rowsOf(tableToIPC(part, "stream")).slice(1)),
        );
      },
    ),
    { numRuns: 60 },
  );
});

test("a dictionary that changes ends a part, and an upload that must be one file", async () => {
  const stream = await changingDictionaries();
  const words: string[] = [];
  for await (const { file } of readUpload(split(stream, [77]), { ...LIMIT, partBytes: 1e9 })) {
    words.push(...(tableFromIPC(file).getChild("d") ?? []));
  }
  assert.deepEqual(words, ["a", "b", "x", "a", "a", "b", "x", "a"]);
  await assert.rejects(collectUpload(split(stream, []), LIMIT), (error) =>
    isLanceError(error, "Unsupported"),
  );
});

test("an upload that may not be cut is one part, whatever its size", async () => {
  const { schema, data } = await messagesOf(new Table({ id: vectorFromArray([1, 2, 3], new Int32()) }));
  const stream = Buffer.concat([schema, ...data, ...data, ...data, END_OF_STREAM]);
  const pool = createPartBufferPool(LIMIT.maxBytes);
  for (let round = 0; round < 3; round++) {
    let asked = 0;
    const mayCut = async () => {
      asked++;
      return false;
    };
    const parts = [];
    for await (const { rows, last } of readUpload(split(stream, [9]), {
      ...LIMIT,
      partBytes: 1,
      mayCut,
      pool,
    })) {
      parts.push([rows, last]);
    }
    assert.deepEqual(parts, [[9, true]]);
    assert.equal(asked, 1);
  }
});

test("compressed bodies pass, and count as what they unpack to", async () => {
  for (const name of ["lz4", "zstd"] as const) {
    const stream = decode(PYARROW_STREAMS[name]);
    const { file, rows, schema } = await collectUpload(split(stream, [1, 50, 300]), LIMIT);
    assert.equal(rows, 100);
    assert.deepEqual(
      schema.fields.map((field) => field.name),
      ["id", "s"],
    );
    assert.equal(file.subarray(8, 8 + stream.byteLength - 8).equals(stream.subarray(0, -8)), true);
    await assert.rejects(collectUpload(split(stream, []), { maxBytes: stream.byteLength + 1 }), (error) =>
      isLanceError(error, "PayloadTooLarge"),
    );
  }
});

test("the framing from before Arrow 0.15 is read", async () => {
  const stream = decode(PYARROW_STREAMS.legacy);
  assert.equal((await collectUpload(split(stream, []), LIMIT)).rows, 3);
  assert.deepEqual(rowsOf(await join(toIpcFile(split(stream, [7])))), rowsOf(stream));
});

test("a schema without batches is an upload of no rows", async () => {
  const writer = new RecordBatchStreamWriter();
  writer.write(new Table(new Schema([new Field("id", new Int32(), true)])));
  const stream = await writer.finish().toUint8Array();
  const { file, rows } = await collectUpload(split(stream, []), LIMIT);
  assert.equal(rows, 0);
  assert.equal(tableFromIPC(file).numRows, 0);
});

test("refuses an incomplete stream, with the position of the fault", async () => {
  const stream = decode(PYARROW_STREAMS.lz4);
  const refused = async (bytes: Uint8Array, message: RegExp) =>
    assert.rejects(collectUpload(split(bytes, [3]), LIMIT), (error) => {
      assert.ok(isLanceError(error, "InvalidInput"), String(error));
      assert.match(error.message, message);
      return true;
    });
  await refused(new Uint8Array(), /the body is empty/);
  await refused(Buffer.from("ARR"), /ends before its schema/);
  await refused(Buffer.from('{"not":"arrow"} at all'), /at byte 0/);
  await refused(stream.subarray(8, -8), /at byte 0/);
  for (const length of [9, 100, 250, 400, stream.byteLength - 9]) {
    await refused(stream.subarray(0, length), /ends (?:in the middle of a message|before its schema)/);
  }
  await refused(Buffer.concat([stream.subarray(0, -8), stream]), /second schema/);
});

test("big-endian data is refused", async () => {
  const stream = decode(PYARROW_STREAMS.lz4);
  const metadata = stream.subarray(8, 8 + stream.readUInt32LE(4));
  const { view, at } = schemaTable(metadata);
  const vtable = at - view.getInt32(at, true);
  // Little-endian is the default and omitted; the position of the fields serves as a value other than zero.
  view.setUint16(vtable + 4, view.getUint16(vtable + 6, true), true);
  await assert.rejects(collectUpload(split(stream, []), LIMIT), /big-endian/);
});

test("changed bytes give an error of this project or an upload, never another failure", async () => {
  const sources = [...Object.values(PYARROW_STREAMS).map(decode)];
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...sources),
      fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), { minLength: 1, maxLength: 4 }),
      async (source, changes) => {
        const bytes = Buffer.from(source);
        for (const [at, value] of changes) bytes[at % bytes.byteLength] = value;
        try {
          await collectUpload(split(bytes, [64]), LIMIT);
        } catch (error) {
          assert.ok(error instanceof LanceError, String(error));
        }
      },
    ),
    { numRuns: 1000 },
  );
});

test("an aborted upload and one past the limit stop", async () => {
  const stream = decode(PYARROW_STREAMS.legacy);
  await assert.rejects(collectUpload(split(stream, []), { ...LIMIT, signal: AbortSignal.abort() }), (error) =>
    isLanceError(error, "Cancelled"),
  );
  await assert.rejects(collectUpload(split(stream, [10, 20]), { maxBytes: 100 }), (error) =>
    isLanceError(error, "PayloadTooLarge"),
  );
});
