import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { tableFromArrays, tableFromIPC, tableToIPC } from "apache-arrow";
import { test } from "vitest";
import { failsWith } from "../../../../../test/fixtures/dir/directory-backend.ts";
import { beginCall } from "../../../../../test/support/caller.ts";
import { toIpcFile } from "../../../../arrow/ipc/file.ts";
import { splitIpcFile } from "../../../../arrow/ipc/stream.ts";
import { decodeSchema } from "../../../../arrow/schema.ts";
import { LanceNamespaceService } from "../../../../gen/lance/namespace/v1/service_pb.ts";
import { createTurns } from "../../concurrency/turns.ts";
import { createRowWidths } from "../../engine/row-widths.ts";
import type { BuiltQuery, Gathered } from "../query/build.ts";
import type { Guarded } from "../tables/call-data.ts";
import type { ReadAhead } from "./read-ahead.ts";
import { resultMessages } from "./result-stream.ts";

const { queryTable } = LanceNamespaceService.method;

/** Runs a query for at most `maxRows` rows for each vector; returns its rows and the memory that it has entered with. */
async function resultOf(
  maxRows: number,
  vectors: number,
  gathered: Partial<Gathered> = {},
  rows = 1000,
  { averageRow = 0, skipRows = 0, widths = createRowWidths(), ids = Int32Array.of(1, 2), columns = "" } = {},
) {
  const stream = tableToIPC(tableFromArrays({ id: ids }), "stream");
  const file = Buffer.concat(await Readable.from(toIpcFile(Readable.from([stream]))).toArray());
  const left = [file];
  const query = async () => ({ execute: async () => ({ next: async () => left.shift() ?? null }) });
  const runs = [{ query, firstVector: 0, vectors }];
  const shape = () => ({ outputSchema: async () => file });
  const plain = {
    hidesRowId: false,
    filterAfter: undefined,
    columns,
    conditions: [],
    outside: { fields: [], rows: 0 },
    orders: [],
    skipRows,
    hybrid: false,
    gatheredRows: 0,
    vectorBytes: 0,
  };
  const none = { rows: 0, atATime: 8192, keptBytes: 0, where: undefined };
  const built = { ...plain, maxRows, runs, shape, gathered: { ...none, ...gathered } };
  const data = {
    wait: (work: () => Promise<unknown>) => work(),
    rowCount: async () => rows,
    countRows: async () => 20,
    schema: async () => decodeSchema(splitIpcFile(file).schemaMetadata),
    averageRow: async () => averageRow,
    refuseMisread: async () => {},
    widths,
  } as unknown as Guarded;
  const entered: number[] = [];
  const counted: number[] = [];
  const place = { given() {}, taken() {}, leave() {} };
  const enter: ReadAhead["enter"] = async (bytes) => {
    entered.push(bytes);
    return place;
  };
  const count: ReadAhead["count"] = (bytes) => {
    counted.push(bytes);
    return { ...place, leave: () => counted.push(-bytes) };
  };
  const readAhead = { enter, count } as Partial<ReadAhead> as ReadAhead;
  const options = {
    data,
    call: beginCall(queryTable),
    turns: createTurns(1),
    readAhead,
  };
  const pieces: Uint8Array[] = [];
  for await (const { data } of resultMessages(built as unknown as BuiltQuery, options)) {
    pieces.push(data?.data ?? new Uint8Array());
  }
  return { rows: tableFromIPC(Buffer.concat(pieces)).numRows, entered, counted };
}

const entersWith = async (...asked: Parameters<typeof resultOf>) => (await resultOf(...asked)).entered;

test("a result takes memory for reading ahead if all its vectors together may have many rows", async () => {
  assert.deepEqual(await resultOf(64, 1), { rows: 2, entered: [], counted: [] });
  assert.deepEqual(await resultOf(32, 2), { rows: 2, entered: [], counted: [] });
  assert.deepEqual(await resultOf(64, 100), { rows: 2, entered: [2 * 64 * 100 * 4], counted: [] });
  assert.deepEqual(await resultOf(65, 1), { rows: 2, entered: [2 * 65 * 4], counted: [] });
});

test("a result of few rows takes memory before it begins if the table's rows are wide on average", async () => {
  assert.deepEqual(await entersWith(10, 1, {}, 1000, { averageRow: 100_000 }), []);
  assert.deepEqual(await entersWith(10, 1, {}, 1000, { averageRow: 200_000 }), [2 * 10 * 200_000]);
});

test("a result of few rows takes memory before it begins if results with these columns were wide lately", async () => {
  const widths = createRowWidths();
  widths.begin("")(2, 400_000);
  assert.deepEqual(await entersWith(10, 1, {}, 1000, { widths }), [2 * 10 * 200_000]);
  for (let result = 0; result < 10; result++) await resultOf(1, 1, {}, 1000, { widths });
  assert.deepEqual(await entersWith(10, 1, {}, 1000, { widths }), []);
});

test("a result of few rows takes no memory if results with these columns were narrow, whatever other columns are", async () => {
  const options = { widths: createRowWidths(), averageRow: 2 ** 23, columns: "id\n_distance\n" };
  assert.equal((await entersWith(10, 1, {}, 1000, options)).length, 1);
  assert.deepEqual(await entersWith(10, 1, {}, 1000, options), []);
});

test("a result of few rows takes memory if its columns are the wide ones, whatever results with them had before", async () => {
  for (const columns of ["", "id\nelse\n"]) {
    const options = { widths: createRowWidths(), averageRow: 2 ** 23, columns };
    for (let result = 0; result < 3; result++)
      assert.equal((await entersWith(10, 1, {}, 1000, options)).length, 1);
  }
});

test("a collected result that is unexpectedly wide counts until its reader has it, and is expected from then on", async () => {
  const widths = createRowWidths();
  const ids = new Int32Array(300_000);
  const { counted, entered, rows } = await resultOf(2, 1, {}, 1000, { widths, ids });
  assert.deepEqual([rows, entered, counted.length], [300_000, [], 2]);
  assert.ok(Number(counted[0]) > ids.byteLength && counted[0] === -Number(counted[1]), `${counted}`);
  assert.equal(widths.of("")?.toFixed(), "4");
});

test("rows that are left out at the start of a result count among its rows", async () => {
  assert.deepEqual(await entersWith(10, 1, {}, 1000, { skipRows: 54 }), []);
  assert.deepEqual(await entersWith(10, 1, {}, 1000, { skipRows: 55 }), [2 * 10 * 4]);
});

const ALL = { rows: Number.MAX_SAFE_INTEGER, atATime: Number.MAX_SAFE_INTEGER };
const MANY = 10_000_000;
const SCAN_BYTES = 24 * 1024 * 1024;

test("a result with an order takes memory for all rows that meet its condition", async () => {
  assert.deepEqual((await resultOf(MANY, 1, {}, MANY)).entered, [SCAN_BYTES]);
  assert.deepEqual((await resultOf(MANY, 1, ALL, MANY)).entered, [2 * MANY * 4]);
  assert.deepEqual((await resultOf(MANY, 1, { ...ALL, where: "id > 1" }, MANY)).entered, [SCAN_BYTES]);
});

test("a result with an order is not refused because a few rows of the table are wide", async () => {
  const widths = createRowWidths();
  widths.begin("")(1, 2 ** 20);
  const entered = await entersWith(MANY, 1, ALL, MANY, { widths });
  assert.deepEqual(entered, [2 * (MANY * 4 + 16 * 2 ** 20)]);
});

test("a search for many rows takes memory for their vectors, which the result need not have", async () => {
  const search = { rows: MANY, keptBytes: 4096 };
  assert.deepEqual((await resultOf(MANY, 1, search, 10_000)).entered, [2 * 10_000 * 4096]);
  assert.deepEqual((await resultOf(MANY, 3, search, 10_000)).entered, [2 * 3 * 10_000 * 4096]);
  assert.deepEqual((await resultOf(MANY, 1, { rows: MANY }, MANY)).entered, [SCAN_BYTES]);
});

test("a result is refused if the engine would gather more rows than fit into half of the free memory", async () => {
  const tooMany = process.availableMemory() / 8;
  await assert.rejects(resultOf(65, 1, ALL, tooMany), failsWith("InvalidInput"));
  await assert.rejects(
    resultOf(65, 1, { rows: ALL.rows, keptBytes: 4096 }, tooMany),
    failsWith("InvalidInput"),
  );
  await resultOf(65, 1, { ...ALL, where: "id > 1" }, tooMany);
  await resultOf(65, 1, { ...ALL, rows: 65 }, tooMany);
});
