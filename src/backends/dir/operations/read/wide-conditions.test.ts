import assert from "node:assert/strict";
import { Int32, Table, tableFromIPC, tableToIPC, Utf8, vectorFromArray } from "apache-arrow";
import { type TestContext, test } from "vitest";
import { openTexts, ROWS, SCAN_BYTES, TEXT_BYTES } from "../../../../../test/fixtures/dir/wide-rows.ts";

async function tableOf(t: TestContext, textBytes?: number) {
  const opened = await openTexts(t, textBytes);
  const batchesOf = async (request: Parameters<typeof opened.client.query>[1]) =>
    tableFromIPC(await opened.client.query("t", request)).batches.map(({ numRows }) => numRows);
  return { ...opened, batchesOf };
}

const ID = { columnNames: ["id"] };

test("a result of narrow columns comes in small batches, and takes memory, if its condition reads wide ones", async (t) => {
  const { batchesOf, entered } = await tableOf(t);
  for (const request of [
    { columns: ID, filter: "text LIKE '%x%'" },
    { columns: ID, filter: "`text` LIKE '%x%'" },
    { columns: { columnAliases: { length: "length(text)" } } },
  ]) {
    const batches = await batchesOf(request);
    assert.ok(Math.max(...batches) <= 16, `${JSON.stringify(request)}: ${batches}`);
    assert.ok(Number(entered()[0]) >= SCAN_BYTES);
  }
});

test("a result of few rows takes memory if its condition reads wide columns of many", async (t) => {
  const { batchesOf, entered } = await tableOf(t);
  assert.deepEqual(await batchesOf({ columns: ID, k: 1n, filter: "text LIKE '199 %'" }), [1]);
  assert.ok(Number(entered()[0]) >= SCAN_BYTES);
});

test("a result with an order by a wide column, which it does not have, takes memory for all its values", async (t) => {
  const { batchesOf, entered } = await tableOf(t);
  await batchesOf({ columns: ID, orderBy: [{ columnName: "text" }] });
  assert.ok(Number(entered()[0]) >= 2 * ROWS * TEXT_BYTES);
});

test("a condition on narrow columns of a table with wide ones changes nothing", async (t) => {
  const { client, batchesOf, entered } = await tableOf(t);
  assert.deepEqual(await batchesOf({ columns: ID, filter: "id <> 2" }), [199]);
  assert.deepEqual(entered(), [2 * ROWS * 4]);
  assert.deepEqual(await batchesOf({ columns: ID, k: 5n, filter: "id >= 0 OR 'text' = 'a'" }), [5]);
  assert.equal((await client.call("countTableRows", "t", { predicate: "id > 198" })).count, 1n);
  assert.deepEqual(entered(), []);
});

test("a condition on texts that are short changes nothing", async (t) => {
  const { client, batchesOf, entered } = await tableOf(t, 100);
  assert.deepEqual(await batchesOf({ columns: ID, k: 64n, filter: "text LIKE '%x%'" }), [64]);
  assert.equal((await client.call("countTableRows", "t", { predicate: "text LIKE '%x'" })).count, 200n);
  assert.deepEqual(entered(), []);
});

test("a query and a count whose conditions read longer texts take memory for them", async (t) => {
  const { client, batchesOf, entered } = await tableOf(t, 8192);
  assert.deepEqual(await batchesOf({ columns: ID, k: 1n, filter: "text LIKE '199 %'" }), [1]);
  assert.ok(Number(entered()[0]) >= 2 * ROWS * 8192);
  await client.call("countTableRows", "t", { predicate: "text LIKE '1%'" });
  assert.ok(Number(entered()[0]) >= 2 * ROWS * 8192);
});

test("a count whose condition reads wide columns takes memory until it ends", async (t) => {
  const { client, entered, held } = await tableOf(t);
  for (const predicate of ["text LIKE '1%'", "text <> 'a'", "length(text) > 5"]) {
    const { count } = await client.call("countTableRows", "t", { predicate });
    assert.equal(count, predicate.includes("LIKE") ? 111n : 200n);
    assert.deepEqual(entered(), [SCAN_BYTES]);
  }
  assert.equal(held(), 0);
});

test("a search for words takes memory, and comes in small batches, if it reads a wide column without an index", async (t) => {
  const { client, batchesOf, entered } = await tableOf(t);
  const stringQuery = { query: "7", columns: ["text"] };
  const search = { columns: ID, k: 5n, fullTextQuery: { stringQuery } };
  const structuredQuery = { query: { match: { terms: "7", column: "text" } } };
  for (const request of [search, { ...search, fullTextQuery: { structuredQuery } }]) {
    assert.deepEqual(await batchesOf(request), [1]);
    assert.ok(Number(entered()[0]) >= SCAN_BYTES);
  }
  await client.call("createTableIndex", "t", { column: "text", indexType: "FTS" });
  entered();
  assert.deepEqual(await batchesOf(search), [1]);
  assert.ok(Number(entered()[0] ?? 0) < SCAN_BYTES);
});

test("a search for words takes memory, and comes in small batches, if it reads many wide rows that are not in the index yet", async (t) => {
  const { client, batchesOf, entered } = await tableOf(t);
  await client.call("createTableIndex", "t", { column: "text", indexType: "FTS" });
  const rowsOf = (count: number) => {
    const ids = Array.from({ length: count }, (_, id) => 1000 + id);
    const texts = ids.map((id) => `${id} `.padEnd(TEXT_BYTES, "x"));
    const rows = { id: vectorFromArray(ids, new Int32()), text: vectorFromArray(texts, new Utf8()) };
    return tableToIPC(new Table(rows), "stream");
  };
  const search = { columns: ID, k: 5n, fullTextQuery: { stringQuery: { query: "1007" } } };
  await client.upload("insertIntoTable", "t", {}, rowsOf(20));
  assert.deepEqual(await batchesOf(search), [1]);
  assert.ok(Number(entered()[0] ?? 0) < SCAN_BYTES);
  await client.upload("insertIntoTable", "t", {}, rowsOf(ROWS));
  assert.deepEqual(await batchesOf(search), [2]);
  assert.ok(Number(entered()[0]) >= SCAN_BYTES);
  assert.deepEqual(await batchesOf({ ...search, fastSearch: true }), [0]);
  assert.ok(Number(entered()[0] ?? 0) < SCAN_BYTES);
});
