import assert from "node:assert/strict";
import { Int32, Table, tableToIPC, vectorFromArray } from "apache-arrow";
import { test, vi } from "vitest";
import { failsWith } from "../../../../../test/fixtures/dir/directory-backend.ts";
import { openTexts, ROWS, SCAN_BYTES, TEXT_BYTES } from "../../../../../test/fixtures/dir/wide-rows.ts";

/** Number of bytes that the engine holds of all texts, which it reads at once. */
const ALL_BYTES = 2 * ROWS * TEXT_BYTES;

const atLeast = (bytes: readonly number[], least: number) =>
  assert.ok(Number(bytes.at(-1)) >= least, `${bytes} of ${least}`);

test("a deletion whose condition reads wide columns takes memory for the rows that the engine reads at a time", async (t) => {
  const { client, entered, held } = await openTexts(t);
  const { numDeletedRows } = await client.call("deleteFromTable", "t", { predicate: "text LIKE '1 %'" });
  assert.equal(numDeletedRows, 1n);
  atLeast(entered(), ALL_BYTES);
  assert.equal(held(), 0);
});

test("a deletion by a narrow column takes no memory", async (t) => {
  const { client, entered } = await openTexts(t);
  await client.call("deleteFromTable", "t", { predicate: "id < 100" });
  assert.deepEqual(entered(), []);
});

test("an update takes memory for the wide rows that it writes again, and for those that its condition reads", async (t) => {
  const { client, entered, held } = await openTexts(t);
  const update = async (predicate?: string) => {
    await client.call("updateTable", "t", { predicate, updates: [{ column: "id", expression: "id" }] });
    return entered();
  };
  atLeast(await update(), ALL_BYTES);
  atLeast(await update("text LIKE '1 %'"), ALL_BYTES);
  atLeast(await update("id < 100"), ALL_BYTES / 2);
  assert.deepEqual(await update("id = 1"), []);
  assert.equal(held(), 0);
});

test("a change of narrow rows takes no memory", async (t) => {
  const { client, entered } = await openTexts(t, 100);
  await client.call("updateTable", "t", { updates: [{ column: "id", expression: "id" }] });
  await client.call("deleteFromTable", "t", { predicate: "text LIKE '%x'" });
  assert.deepEqual(entered(), []);
});

test("a change for which the engine would need more than half of the free memory is refused", async (t) => {
  const { client } = await openTexts(t);
  const memory = vi.spyOn(process, "availableMemory").mockReturnValue(SCAN_BYTES);
  t.onTestFinished(() => memory.mockRestore());
  const deletion = client.call("deleteFromTable", "t", { predicate: "text LIKE '%x'" });
  await assert.rejects(deletion, failsWith("InvalidInput"));
  await client.call("deleteFromTable", "t", { predicate: "id = 1" });
});

test("merges that read wide columns, and new columns of them, take memory", async (t) => {
  const { client, entered, held } = await openTexts(t);
  const ids = new Table({ id: vectorFromArray([1, 2], new Int32()) });
  const request = { on: ["id"], whenMatchedUpdateAll: true };
  await client.upload("mergeInsertIntoTable", "t", request, tableToIPC(ids, "stream"));
  atLeast(entered(), ALL_BYTES);
  await client.call("alterTableAddColumns", "t", { newColumns: [{ name: "double", expression: "2 * id" }] });
  assert.deepEqual(entered(), []);
  const newColumns = [{ name: "length", expression: "length(text)" }];
  await client.call("alterTableAddColumns", "t", { newColumns });
  atLeast(entered(), ALL_BYTES);
  assert.equal(held(), 0);
});
