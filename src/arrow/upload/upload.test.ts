import assert from "node:assert/strict";
import {
  Dictionary,
  Field,
  Int32,
  RecordBatchStreamWriter,
  Schema,
  Table,
  tableFromIPC,
  tableToIPC,
  Utf8,
  vectorFromArray,
} from "apache-arrow";
import fc from "fast-check";
import { test } from "vitest";
import { PYARROW_STREAMS } from "../../../test/fixtures/arrow/pyarrow-streams.ts";
import { decode, join, LIMIT, rowsOf, split, tables } from "../../../test/fixtures/arrow/upload.ts";
import { isLanceError, LanceError } from "../../namespace/errors.ts";
import { toIpcFile } from "../ipc/file.ts";
import { schemaTable } from "../ipc/message.ts";
import { END_OF_STREAM, splitIpcFile } from "../ipc/stream.ts";
import { collectUpload } from "./upload.ts";

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

test("refuses what follows the end of a stream or a file, wherever it is split", async () => {
  const table = new Table({ id: vectorFromArray(Int32Array.of(1, 2, 3)) });
  const other = new Table({ name: vectorFromArray(["a"], new Utf8()) });
  const streams = [tableToIPC(table, "stream"), tableToIPC(new Table(table.schema), "stream")];
  const rests = [
    ...streams,
    tableToIPC(other, "stream"),
    new Uint8Array(1),
    new Uint8Array(8),
    new Uint8Array(200_000),
    Buffer.from("rubbish"),
    END_OF_STREAM,
  ];
  for (const stream of streams)
    for (const rest of rests)
      for (const size of [1, 8, stream.byteLength, 1_000_000]) {
        const body = Buffer.concat([stream, rest]);
        const cuts = Array.from(
          { length: Math.min(400, Math.ceil(body.byteLength / size)) },
          (_, i) => i * size,
        );
        const position = new RegExp(`after the end of its Arrow data, at byte ${stream.byteLength}:`);
        await assert.rejects(
          collectUpload(split(body, cuts), LIMIT),
          (error: Error) => isLanceError(error, "InvalidInput") && position.test(error.message),
        );
      }
  const files = await Promise.all(streams.map((stream) => join(toIpcFile(split(stream, [])))));
  for (const first of files)
    for (const second of files)
      await assert.rejects(collectUpload(split(Buffer.concat([first, second]), []), LIMIT), (error) =>
        isLanceError(error, "InvalidInput"),
      );
  for (const file of [
    ...files,
    ...streams.map((_, i) => tableToIPC(i === 0 ? table : new Table(table.schema), "file")),
  ])
    await collectUpload(split(file, []), LIMIT);
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
