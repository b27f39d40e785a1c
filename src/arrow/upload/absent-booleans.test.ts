import assert from "node:assert/strict";
import {
  Bool,
  type DataType,
  Dictionary,
  Field,
  FixedSizeList,
  Int32,
  List,
  Map_,
  makeData,
  makeVector,
  Struct,
  Table,
  tableFromIPC,
  tableToIPC,
  Utf8,
  vectorFromArray,
} from "apache-arrow";
import { test } from "vitest";
import { LIMIT, messagesIn, split } from "../../../test/fixtures/arrow/upload.ts";
import { withNumber } from "../../../test/support/hostile-arrow.ts";
import { isLanceError } from "../../namespace/errors.ts";
import { STRUCT_BYTES } from "../ipc/arrays.ts";
import { scanIpcFile } from "../ipc/file-scan.ts";
import { type FlatTable, readTable, readVector, rootTable } from "../ipc/flatbuffer.ts";
import type { ArrowField } from "../schema.ts";
import { checkLayout } from "./body-check.ts";
import { createDictionaryTexts } from "./dictionary-texts.ts";
import { collectUpload } from "./upload.ts";

/*
 * apache-arrow writes booleans that are all null without a buffer of values. The engine reads only columns whose buffers are complete.
 */

const flag = new Field("flag", new Bool(), true);
const entries = new Field("entries", new Struct([new Field("key", new Utf8(), false), flag]), false);

/** Columns with booleans of which all are null. */
const COLUMNS: readonly (readonly [DataType, unknown])[] = [
  [new Bool(), null],
  [new Struct([flag]), null],
  [new Struct([flag, new Field("n", new Int32(), true)]), { flag: null, n: 1 }],
  [new List(flag), [null, null]],
  [new FixedSizeList(3, flag), [null, null, null]],
  [new Map_(entries as never), new Map([["a", null]])],
  [new List(new Field("item", new Struct([flag]), true)), [{ flag: null }]],
  [new Dictionary(new Bool(), new Int32(), 7), null],
];

function tableOf(type: DataType, value: unknown, rows: number): Table {
  return new Table({
    before: vectorFromArray(Array(rows).fill("text"), new Utf8()),
    c: vectorFromArray(Array(rows).fill(value), type),
    after: vectorFromArray(Array(rows).fill(true), new Bool()),
  });
}

/** Returns the arrays and buffers of the batches of a stream or file, which a reader of apache-arrow does not compare. */
function sizesIn(file: Uint8Array) {
  return messagesIn(file.subarray(8)).data.flatMap((message) => {
    const batch = readTable(rootTable(message.subarray(8)), 2) as FlatTable;
    const { at, length } = readVector(batch, 2, STRUCT_BYTES);
    return Array.from({ length }, (_, i) => Number(batch.view.getBigInt64(at + i * STRUCT_BYTES + 8, true)));
  });
}

test("booleans that are all null get the buffer that their writer omits, at every depth", async () => {
  for (const [type, value] of COLUMNS) {
    for (const rows of [1, 9, 1000]) {
      const table = tableOf(type, value, rows);
      for (const form of ["stream", "file"] as const) {
        const bytes = tableToIPC(table, form);
        const { file } = await collectUpload(split(bytes, [7, 500]), LIMIT);
        assert.deepEqual(tableFromIPC(file).toArray().map(String), table.toArray().map(String), `${type}`);
      }
    }
  }
});

test("the buffer of booleans that are all null is as large as that of their validity", async () => {
  const stream = tableToIPC(new Table({ c: vectorFromArray(Array(1000).fill(null), new Bool()) }), "stream");
  assert.deepEqual(sizesIn(Buffer.concat([Buffer.alloc(8), stream])), [128, 0]);
  const { file } = await collectUpload(split(stream, []), LIMIT);
  assert.deepEqual(sizesIn(file).slice(0, 2), [128, 128]);
});

function columns(count: number): ArrowField[] {
  const column = {
    nullable: true,
    type: { name: "bool" },
    children: [],
    dictionary: undefined,
    metadata: {},
  };
  return Array.from({ length: count }, (_, i) => ({ ...column, name: `${i}` }) as ArrowField);
}

/** Returns the table of a compressed batch: nine nulls in each column, with the whole body of 16 bytes as validity and without values. */
function compressedBatch(arrays: number): Buffer {
  const bytes = Buffer.alloc(80 + arrays * 48 + 16);
  bytes.writeUInt32LE(32, 0);
  for (const [i, value] of [12, 28, 8, 16, 20, 24].entries()) bytes.writeUInt16LE(value, 8 + i * 2);
  bytes.writeInt32LE(24, 32);
  bytes.writeBigInt64LE(9n, 40);
  // The table of the compression has no fields: LZ4 is the default.
  bytes.writeUInt32LE(68 - 56, 56);
  for (const [i, value] of [4, 4].entries()) bytes.writeUInt16LE(value, 64 + i * 2);
  bytes.writeInt32LE(4, 68);
  const buffers = 80 + arrays * 16 + 8;
  bytes.writeUInt32LE(76 - 48, 48);
  bytes.writeUInt32LE(buffers - 4 - 52, 52);
  bytes.writeUInt32LE(arrays, 76);
  bytes.writeUInt32LE(arrays * 2, buffers - 4);
  for (let i = 0; i < arrays; i++) {
    for (const at of [80 + i * 16, 88 + i * 16]) bytes.writeBigInt64LE(9n, at);
    bytes.writeBigInt64LE(16n, buffers + i * 32 + 8);
  }
  return bytes;
}

test("compressed booleans get their buffer, and no more than two share bytes", () => {
  // A buffer that is stored uncompressed.
  const body = Buffer.alloc(16).fill(0xff, 0, 8);
  const check = (count: number, metadata: Buffer) =>
    checkLayout(columns(count), rootTable(metadata), body, createDictionaryTexts());
  const metadata = compressedBatch(1);
  assert.equal(check(1, metadata).isCompleted, true);
  assert.deepEqual(check(1, metadata), {
    unpackedBytes: 16,
    neededBytes: 16,
    textBytes: 0,
    isCompleted: false,
  });
  assert.throws(() => check(2, compressedBatch(2)), /compressed buffers share their bytes/);
});

test("metadata that shares the bytes of the buffer's position is refused", async () => {
  const stream = Buffer.from(
    tableToIPC(new Table({ c: vectorFromArray([null, null], new Bool()) }), "stream"),
  );
  const schema = messagesIn(stream).schema.byteLength;
  const batch = readTable(rootTable(stream.subarray(schema + 8)), 2) as FlatTable;
  const bytes = Buffer.from(batch.view.buffer, batch.view.byteOffset, batch.view.byteLength);
  const { at } = readVector(batch, 2, STRUCT_BYTES);
  // The number of rows of the batch is where the size of its second buffer is.
  const vtable = batch.at - batch.view.getInt32(batch.at, true);
  bytes.writeUInt16LE(at + STRUCT_BYTES + 8 - batch.at, vtable + 4);
  await assert.rejects(collectUpload(split(stream, []), LIMIT), /its metadata shares bytes/);
});

test("a file with a message that reaches into the footer is refused", async () => {
  const file = Buffer.from(tableToIPC(new Table({ c: vectorFromArray([1, 2, 3], new Int32()) }), "file"));
  assert.equal((await scanIpcFile(file, 1000)).rows, 3);
  // The body has 16 bytes, and the end mark of the stream follows.
  await assert.rejects(scanIpcFile(withNumber(file, 16n, 32n), 1000), /messages that overlap it/);
});

/** Returns a stream with a column without its values. */
function withoutValues(type: DataType, nulls: number): Uint8Array {
  const data = makeData({ type, length: 9, nullCount: nulls, nullBitmap: new Uint8Array(8) } as never);
  return tableToIPC(new Table({ c: makeVector(data) } as never), "stream");
}

test("an absent buffer of other values is refused", async () => {
  const refused = async (stream: Uint8Array) =>
    assert.rejects(collectUpload(split(stream, []), LIMIT), (error) => {
      assert.ok(isLanceError(error, "InvalidInput"), String(error));
      assert.match(error.message, /column "c" has too small a buffer/);
      return true;
    });
  await refused(withoutValues(new Int32(), 9));
  await refused(withoutValues(new Bool(), 8));
  await refused(withoutValues(new Bool(), 0));
});
