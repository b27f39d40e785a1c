import assert from "node:assert/strict";
import { setImmediate as nextTurn } from "node:timers/promises";
import {
  Bool,
  type DataType,
  Field,
  FixedSizeList,
  Int8,
  Int32,
  List,
  makeVector,
  Null,
  Schema,
  Struct,
  Table,
  tableToIPC,
  vectorFromArray,
} from "apache-arrow";
import { test, vi } from "vitest";
import { PYARROW_STREAMS } from "../../../test/fixtures/arrow/pyarrow-streams.ts";
import { messagesIn } from "../../../test/fixtures/arrow/upload.ts";
import {
  framed,
  lz4Zeros,
  SHARED_VIEWS,
  sharedSchema,
  sharedViews,
  withNumber,
} from "../../../test/support/hostile-arrow.ts";
import { type ErrorName, isLanceError, LanceError } from "../../namespace/errors.ts";
import { ITEMS_PER_STEP } from "../../runtime/pace.ts";
import { STRUCT_BYTES } from "../ipc/arrays.ts";
import { scanIpcFile } from "../ipc/file-scan.ts";
import { type FlatTable, readTable, readVector, rootTable } from "../ipc/flatbuffer.ts";
import { MAX_UPLOAD_BUFFERS, parseMessageHead } from "../ipc/message.ts";
import { createPartBuffer, MAX_FILE_MESSAGES, type PartBuffer } from "../ipc/part-buffer.ts";
import { createStreamScanner } from "../ipc/stream-scanner.ts";
import { checkLz4Frame } from "../ipc/unpack.ts";
import { decodeSchema, MAX_METADATA_ENTRIES, MAX_UPLOAD_TABLES } from "../schema.ts";
import { collectUpload, readUpload } from "./upload.ts";

const MIB = 1024 * 1024;
const OPTIONS = { maxBytes: 64 * MIB };

async function* once(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  yield bytes;
}

function refusal(name: ErrorName, message: RegExp): (error: unknown) => boolean {
  return (error) => isLanceError(error, name) && message.test(error.message);
}

/** Returns a stream with nested structs; the innermost has no fields. */
function nestedStream(levels: number): Uint8Array {
  let field: Field = new Field("x", new Int32(), true);
  for (let level = 0; level < levels; level++) field = new Field("x", new Struct([field]), true);
  return tableToIPC(new Table(new Schema([field])), "stream");
}

test("a schema whose fields share children is refused before it is followed", async () => {
  for (const levels of [12, 30, 60]) {
    assert.ok(sharedSchema(levels).byteLength < 2000);
    await assert.rejects(
      collectUpload(once(framed(sharedSchema(levels))), OPTIONS),
      refusal("InvalidInput", /share so much/),
    );
  }
  assert.equal(decodeSchema(sharedSchema(2)).fields[0]?.children[1]?.children.length, 2);
});

test("a schema nested too deeply is refused", async () => {
  await collectUpload(once(nestedStream(60)), OPTIONS);
  await assert.rejects(
    collectUpload(once(nestedStream(70)), OPTIONS),
    refusal("InvalidInput", /nested deeper than 64/),
  );
});

test("a schema of an upload has a bounded number of fields, and that of a table has not", async () => {
  const fields = Array.from(
    { length: MAX_UPLOAD_TABLES / 2 + 1 },
    (_, i) => new Field(`${i}`, new Int32(), true),
  );
  const stream = Buffer.from(tableToIPC(new Table(new Schema(fields)), "stream"));
  const metadata = stream.subarray(8, 8 + stream.readUInt32LE(4));
  await assert.rejects(collectUpload(once(stream), OPTIONS), refusal("InvalidInput", /too many fields/));
  assert.equal(decodeSchema(metadata).fields.length, fields.length);
});

test("the metadata in an upload has a bounded number of entries, and that of a table has not", async () => {
  const entries = (count: number) => new Map(Array.from({ length: count }, (_, i) => [`key${i}`, "value"]));
  const streamOf = (ofField: number, ofSchema: number) => {
    const field = new Field("x", new Int32(), true, entries(ofField));
    return Buffer.from(tableToIPC(new Table(new Schema([field], entries(ofSchema))), "stream"));
  };
  const tooMany = refusal("InvalidInput", /metadata or that of a field has more than 10000 entries/);
  await collectUpload(once(streamOf(MAX_METADATA_ENTRIES, MAX_METADATA_ENTRIES)), OPTIONS);
  await assert.rejects(collectUpload(once(streamOf(MAX_METADATA_ENTRIES + 1, 0)), OPTIONS), tooMany);
  const stream = streamOf(0, MAX_METADATA_ENTRIES + 1);
  await assert.rejects(collectUpload(once(stream), OPTIONS), tooMany);
  const { metadata } = decodeSchema(stream.subarray(8, 8 + stream.readUInt32LE(4)));
  assert.equal(Object.keys(metadata).length, MAX_METADATA_ENTRIES + 1);
});

test("offsets, lengths and counts beyond the buffer are refused", async () => {
  const metadata = sharedSchema(2);
  for (const at of [0, 16, 24, 44, 48, 64, 68, 88, 96, 104, 108]) {
    for (const value of [0x7fffffff, 0x80000000, 0xfffffff0]) {
      const changed = Buffer.from(metadata);
      changed.writeUInt32LE(value, at);
      await assert.rejects(
        collectUpload(once(framed(changed)), OPTIONS),
        refusal("InvalidInput", /./),
        `${value} at ${at}`,
      );
    }
  }
});

test("rows that take no bytes count against the limit", async () => {
  const table = new Table({ nothing: vectorFromArray(Array(12_345).fill(null), new Null()) });
  const stream = tableToIPC(table, "stream");
  assert.equal((await collectUpload(once(stream), OPTIONS)).rows, 12_345);
  for (const rows of [2n ** 31n, 2n ** 40n, 2n ** 53n - 1n]) {
    await assert.rejects(
      collectUpload(once(withNumber(stream, 12_345n, rows)), OPTIONS),
      refusal("PayloadTooLarge", /more than/),
    );
  }
  await assert.rejects(
    collectUpload(once(withNumber(stream, 12_345n, 2n ** 62n)), OPTIONS),
    refusal("InvalidInput", /no length/),
  );
});

test("the declared sizes of compressed buffers count against the limit together", async () => {
  const stream = Buffer.from(PYARROW_STREAMS.zstd, "base64");
  // 1,100 bytes of text become 60 MiB, which fits, and 70 MiB, which does not.
  assert.equal((await collectUpload(once(withNumber(stream, 1100n, 60n * 1048576n)), OPTIONS)).rows, 100);
  await assert.rejects(
    collectUpload(once(withNumber(stream, 1100n, 70n * 1048576n)), OPTIONS),
    refusal("PayloadTooLarge", /decompresses to more/),
  );
});

test("memory is taken for what a body unpacks to before anybody gets it", async () => {
  const stream = withNumber(Buffer.from(PYARROW_STREAMS.zstd, "base64"), 1100n, 60n * 1048576n);
  let taken = stream.byteLength;
  const hold = (bytes: number) => {
    taken += bytes;
  };
  assert.ok((await collectUpload(once(stream), { ...OPTIONS, hold })).heldBytes > 60 * MIB);
  assert.ok(taken > 60 * MIB && taken < 61 * MIB, `${taken} bytes`);
  const refused = new LanceError("Throttling", "there is no memory");
  const refuse = () => {
    throw refused;
  };
  await assert.rejects(collectUpload(once(stream), { ...OPTIONS, hold: refuse }), refused);
});

/** Returns a stream with a row, which is a list of so many values of a type. */
function listStream(type: DataType, values: readonly unknown[], name = "item"): Uint8Array {
  const list = new List(new Field(name, type, true));
  return tableToIPC(new Table({ list: vectorFromArray([values], list) }), "stream");
}

test("values that take no bytes count as eight bytes in lists, which is what the engine needs for them", async () => {
  // apache-arrow leaves the number of nulls open.
  const stream = withNumber(listStream(new Null(), Array(12_345).fill(null)), -1n, 12_345n);
  await collectUpload(once(withNumber(stream, 12_345n, 8_000_000n)), OPTIONS);
  for (const values of [9_000_000n, 2n ** 31n, 2n ** 40n]) {
    await assert.rejects(
      collectUpload(once(withNumber(stream, 12_345n, values)), OPTIONS),
      refusal("PayloadTooLarge", /decompresses to more/),
    );
  }
});

test("short values in lists take the memory that the engine needs for them, and not the limit", async () => {
  const heldFor = async (stream: Uint8Array) => {
    let taken = stream.byteLength;
    const hold = (bytes: number) => {
      taken += bytes;
    };
    const { heldBytes } = await collectUpload(once(stream), { maxBytes: 50_000, hold });
    assert.equal(heldBytes, taken);
    return taken;
  };
  const flags = Array.from({ length: 10_000 }, (_, i) => i % 3 === 0);
  const count = (taken: number, least: number, most: number) =>
    assert.ok(taken > least && taken < most, `${taken} bytes`);
  count(await heldFor(listStream(new Bool(), flags)), 80_000, 82_000);
  count(await heldFor(listStream(new Int32(), [...flags.keys()])), 80_000, 82_000);
  const struct = new Struct([new Field("a", new Bool(), true), new Field("b", new Int8(), true)]);
  const points = flags.map((a) => ({ a, b: 1 }));
  count(await heldFor(listStream(struct, points)), 160_000, 163_000);
  const vectors = new FixedSizeList(4, new Field("item", new Int8(), true));
  count(await heldFor(listStream(vectors, Array(1000).fill([1, 2, 3, 4]))), 12_000, 13_000);
});

test("texts that views share count each time", async () => {
  const expanded = SHARED_VIEWS.views * SHARED_VIEWS.bytes;
  const held = await collectUpload(once(sharedViews()), { maxBytes: 2 * expanded });
  assert.ok(held.heldBytes > expanded && held.heldBytes < expanded + 20_000, `${held.heldBytes} bytes`);
  await assert.rejects(
    collectUpload(once(sharedViews()), OPTIONS),
    refusal("PayloadTooLarge", /decompresses to more/),
  );
});

test("an LZ4 frame that unpacks to more than its declared size is refused", () => {
  checkLz4Frame(lz4Zeros(16), MIB);
  checkLz4Frame(Buffer.concat([lz4Zeros(8), lz4Zeros(8)]), MIB);
  assert.throws(() => checkLz4Frame(lz4Zeros(1000), MIB), /larger than it says/);
  assert.throws(
    () => checkLz4Frame(Buffer.concat(Array(100).fill(lz4Zeros(10))), MIB),
    /larger than it says/,
  );
  assert.throws(() => checkLz4Frame(lz4Zeros(16).subarray(0, 1000), MIB), /cut off/);
  assert.throws(() => checkLz4Frame(Buffer.from("none of it"), 100), /no LZ4 frame/);
  assert.throws(() => checkLz4Frame(Buffer.alloc(0), 100), /cut off/);
});

test("an LZ4 frame of many short blocks is refused", () => {
  const [head, end] = [lz4Zeros(0).subarray(0, 7), Buffer.alloc(4)];
  const stored = (bytes: number) => Buffer.from([bytes, 0, 0, 0x80, ...Buffer.alloc(bytes)]);
  const frame = (bytes: number, blocks: number) =>
    Buffer.concat([head, ...Array(blocks).fill(stored(bytes)), end]);
  checkLz4Frame(frame(1, 1), 1);
  checkLz4Frame(frame(200, 300), 60_000);
  for (const bytes of [0, 1, 100])
    assert.throws(() => checkLz4Frame(frame(bytes, 300), 300 * bytes), /too many blocks/, `${bytes} bytes`);
});

test("compressed buffers that share their bytes are refused before they are read", async () => {
  for (const name of ["lz4", "zstd"] as const) {
    const stream = Buffer.from(PYARROW_STREAMS[name], "base64");
    const schema = messagesIn(stream).schema.byteLength;
    const batch = readTable(rootTable(stream.subarray(schema + 8)), 2) as FlatTable;
    const { at, length } = readVector(batch, 2, STRUCT_BYTES);
    const bytes = Buffer.from(batch.view.buffer, batch.view.byteOffset, batch.view.byteLength);
    // All buffers that have bytes are the largest one.
    const places = Array.from({ length }, (_, i) => at + i * STRUCT_BYTES);
    const size = (place: number) => bytes.readBigInt64LE(place + 8);
    const largest = places.reduce((a, b) => (size(b) > size(a) ? b : a));
    for (const place of places)
      if (size(place) > 0n) bytes.copy(bytes, place, largest, largest + STRUCT_BYTES);
    await assert.rejects(
      collectUpload(once(stream), OPTIONS),
      refusal("InvalidInput", /compressed buffers share their bytes/),
      name,
    );
  }
});

test("a file whose footer names the same batch twice is refused", async () => {
  const batch = { id: vectorFromArray([1, 2, 3], new Int32()) };
  const file = Buffer.from(tableToIPC(new Table(batch).concat(new Table(batch)), "file"));
  assert.equal((await scanIpcFile(file, MIB)).rows, 6);
  const end = file.byteLength - 10;
  const footer = file.subarray(end - file.readInt32LE(end), end);
  const blocks = [...footer.keys()].filter(
    (at) => at + 8 <= footer.byteLength && at % 4 === 0 && isOffsetOfMessage(file, footer.readBigInt64LE(at)),
  );
  assert.equal(blocks.length, 2);
  footer.copy(footer, blocks[1], blocks[0], (blocks[0] as number) + 24);
  await assert.rejects(scanIpcFile(file, MIB), refusal("InvalidInput", /overlap/));
});

function isOffsetOfMessage(file: Buffer, offset: bigint): boolean {
  return (
    offset >= 8n && offset < BigInt(file.byteLength - 8) && file.readUInt32LE(Number(offset)) === 0xffffffff
  );
}

test("others have their turn while a body of many messages is checked", async () => {
  const batch = new Table({ id: vectorFromArray([1], new Int32()) });
  const table = new Table(batch.schema, Array(20_000).fill(batch.batches[0]));
  for (const form of ["stream", "file"] as const) {
    let [turns, over] = [0, false];
    const others = (async () => {
      for (; !over; turns++) await nextTurn();
    })();
    assert.equal((await collectUpload(once(tableToIPC(table, form)), OPTIONS)).rows, 20_000);
    over = true;
    await others;
    assert.ok(turns > 2, `${turns} turns`);
  }
});

test("a file has a bounded number of messages", () => {
  const buffer = createPartBuffer(MIB);
  for (let i = 0; i < MAX_FILE_MESSAGES; i++) buffer.note("batch", 0, 8, 8);
  assert.throws(() => buffer.note("batch", 0, 8, 8), refusal("InvalidInput", /too many record batches/));
});

test("memory that an upload has outgrown is freed at once, and all of it if the upload fails", async () => {
  const table = new Table({ n: makeVector(new Int32Array(2 * MIB)) });
  const stream = tableToIPC(table, "stream").subarray(0, 6 * MIB);
  const buffers = new Set<ArrayBufferLike>();
  let part: PartBuffer | undefined;
  const pool = {
    take: () => (part = createPartBuffer(OPTIONS.maxBytes)),
    give: () => false,
  };
  async function* stalled() {
    for (let at = 0; at < stream.length; at += MIB) {
      yield stream.subarray(at, at + MIB);
      if (part !== undefined) buffers.add(part.bytes.buffer);
    }
    throw new LanceError("Cancelled", "the client disconnected");
  }
  const upload = readUpload(stalled(), { ...OPTIONS, partBytes: Number.POSITIVE_INFINITY, pool });
  await assert.rejects(upload.next(), refusal("Cancelled", /disconnected/));
  assert.equal(buffers.size, 2);
  for (const buffer of buffers) assert.ok((buffer as ArrayBuffer).detached);
});

test("a schema of thousands of fields is read with pauses", () => {
  const fields = Array.from({ length: 5 * ITEMS_PER_STEP }, (_, i) => new Field(`${i}`, new Int32(), true));
  const part = createPartBuffer(OPTIONS.maxBytes);
  part.append(Buffer.from(tableToIPC(new Table(new Schema(fields)), "stream")));
  const scanner = createStreamScanner(OPTIONS.maxBytes, Number.POSITIVE_INFINITY);
  let [pauses, looks] = [0, 0];
  // A pause is due at every second look.
  while (scanner.advance(part, () => looks++ % 2 === 1) === "pause") pauses++;
  assert.equal(scanner.schema.fields.length, fields.length);
  assert.ok(pauses >= 5, `${pauses} pauses`);
});

test("the head of a message is not read again with each piece of its body", ({ onTestFinished }) => {
  const columns = Object.fromEntries(
    Array.from({ length: 500 }, (_, i) => [`c${i}`, vectorFromArray([1, 2], new Int32())]),
  );
  const stream = Buffer.from(tableToIPC(new Table(columns), "stream"));
  const start = stream.byteLength - 100;
  const part = createPartBuffer(OPTIONS.maxBytes);
  const scanner = createStreamScanner(OPTIONS.maxBytes, Number.POSITIVE_INFINITY);
  part.append(stream.subarray(0, start));
  const reads = vi.spyOn(DataView.prototype, "getUint32");
  onTestFinished(() => reads.mockRestore());
  scanner.advance(part, () => false);
  const once = reads.mock.calls.length;
  for (let at = start; at < stream.byteLength - 20; at++) {
    part.append(stream.subarray(at, at + 1));
    scanner.advance(part, () => false);
  }
  assert.ok(once > 500, `${once} reads`);
  assert.equal(reads.mock.calls.length, once);
  part.append(stream.subarray(stream.byteLength - 20));
  scanner.advance(part, () => false);
  assert.equal(scanner.finish(part).rows, 2);
});

test("a message of an upload has a bounded number of buffers", async () => {
  const stream = Buffer.from(tableToIPC(new Table({ id: vectorFromArray([1], new Int32()) }), "stream"));
  const batch = Buffer.from(messagesIn(stream).data[0] as Uint8Array);
  const metadata = batch.subarray(8, 8 + batch.readUInt32LE(4));
  const header = readTable(rootTable(metadata), 2) as FlatTable;
  const { at } = readVector(header, 2, STRUCT_BYTES);
  // Another vector, of empty buffers, follows the metadata.
  const longer = Buffer.concat([metadata, Buffer.alloc(8 + (MAX_UPLOAD_BUFFERS + 1) * STRUCT_BYTES)]);
  longer.writeUInt32LE(MAX_UPLOAD_BUFFERS + 1, metadata.length);
  for (let place = 0; place < at; place += 4)
    if (place + metadata.readUInt32LE(place) === at - 4) longer.writeUInt32LE(metadata.length - place, place);
  assert.equal(parseMessageHead(longer, 0).kind, "batch");
  const hostile = Buffer.concat([
    messagesIn(stream).schema,
    framed(longer, batch.subarray(8 + metadata.length)),
  ]);
  await assert.rejects(
    collectUpload(once(hostile), OPTIONS),
    refusal("InvalidInput", /more than 262144 buffers/),
  );
});
