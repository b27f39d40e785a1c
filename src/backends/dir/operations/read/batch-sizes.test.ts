import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { Int32, Table, tableFromIPC, tableToIPC, Utf8, vectorFromArray } from "apache-arrow";
import { type TestContext, test } from "vitest";
import { openClient, temporaryDirectory } from "../../../../../test/fixtures/dir/directory-backend.ts";

const MIB = 1024 * 1024;

/** Creates a table of these texts; returns the numbers of rows in the batches of a result. */
async function tableOf(t: TestContext, texts: readonly string[]) {
  const client = await openClient(t, await temporaryDirectory(t));
  const id = vectorFromArray(
    texts.map((_, index) => index),
    new Int32(),
  );
  const body = tableToIPC(new Table({ id, text: vectorFromArray(texts, new Utf8()) }), "stream");
  await client.upload("createTable", "t", {}, body);
  return async (request: Parameters<typeof client.query>[1] = {}) =>
    tableFromIPC(await client.query("t", request)).batches.map(({ numRows }) => numRows);
}

const COMPRESSIBLE = "x".repeat(MIB / 8);

test("a first result comes in small batches although compression has made the files much smaller than the rows", async (t) => {
  const batchesOf = await tableOf(t, Array(100).fill(COMPRESSIBLE));
  for (const columns of [
    undefined,
    { columnNames: ["text"] },
    { columnAliases: { length: "text || text" } },
  ]) {
    const batches = await batchesOf({ columns });
    assert.ok(Math.max(...batches) <= 16, `${batches}`);
  }
});

test("narrow columns of a table with wide rows come in large batches", async (t) => {
  const batchesOf = await tableOf(t, Array(100).fill(COMPRESSIBLE));
  assert.deepEqual(await batchesOf({ columns: { columnNames: ["id"] } }), [100]);
});

test("a result comes in large batches although a single row that results had before is wide", async (t) => {
  const wide = randomBytes(3 * MIB).toString("base64");
  const batchesOf = await tableOf(t, [...Array(20_000).fill("narrow"), wide]);
  assert.deepEqual(await batchesOf({ k: 1n, filter: "id = 20000" }), [1]);
  for (let result = 0; result < 4; result++) {
    const batches = await batchesOf();
    assert.ok(batches.length <= 40, `${batches.length} batches`);
  }
});
