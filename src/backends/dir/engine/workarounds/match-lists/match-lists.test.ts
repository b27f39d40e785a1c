import assert from "node:assert/strict";
import { Int32, Table, tableToIPC, Utf8, vectorFromArray } from "apache-arrow";
import { type TestContext, test } from "vitest";
import { openClient, temporaryDirectory } from "../../../../../../test/fixtures/dir/directory-backend.ts";
import { idsOf } from "../../../../../../test/fixtures/dir/rows.ts";
import { atOnce } from "../../../../../runtime/pace.ts";
import { parseSql } from "../../sql/trees.ts";
import { matchListSteps } from "./match-lists.ts";

const TEXTS = ["red", "blue", null, "dark red", ""];

const rowsOf = (ids: readonly number[], texts: readonly (string | null)[]) =>
  tableToIPC(
    new Table({ id: vectorFromArray(ids, new Int32()), text: vectorFromArray(texts, new Utf8()) }),
    "stream",
  );

async function openTable(t: TestContext) {
  const client = await openClient(t, await temporaryDirectory(t));
  await client.upload("createTable", "t", {}, rowsOf([0, 1, 2, 3, 4], TEXTS));
  return client;
}

const MATCHES = "regexp_match(text, 'red') IS NOT NULL";

test("a condition that checks a match for null finds the rows that match, or all others", async (t) => {
  const client = await openTable(t);
  for (const [filter, ids] of [
    [MATCHES, [0, 3]],
    ["regexp_match(text, 'red') IS NULL", [1, 2, 4]],
    ["NOT ((Regexp_Match(text, 'RED', 'i')) is null) OR id = 1", [0, 1, 3]],
    ["(regexp_match(text, 'red') AND id > 0) IS NULL", []],
    ["regexp_match(text, 'red') AND text IS NOT NULL", [0, 3]],
  ] as const)
    assert.deepEqual(idsOf(await client.query("t", { filter })), ids, filter);
});

test("updates, merges and deletions of the rows that match leave the others as they are", async (t) => {
  const client = await openTable(t);
  const updates = [{ column: "id", expression: "id" }];
  assert.equal((await client.call("updateTable", "t", { predicate: MATCHES, updates })).updatedRows, 2n);
  const merge = {
    on: ["id"],
    whenNotMatchedBySourceDelete: true,
    whenNotMatchedBySourceDeleteFilt: "regexp_match(text, 'dark') IS NOT NULL",
  };
  const merged = await client.upload("mergeInsertIntoTable", "t", merge, rowsOf([0], ["red"]));
  assert.equal(merged.numDeletedRows, 1n);
  assert.equal((await client.call("deleteFromTable", "t", { predicate: MATCHES })).numDeletedRows, 1n);
  assert.deepEqual(idsOf(await client.query("t")), [1, 2, 4]);
});

test("a condition without a match that is checked for null keeps its text", () => {
  for (const text of ["regexp_match(a, 'x') AND b IS NULL", "a = 'regexp_match(b) IS NULL'", "a IS NULL"])
    assert.deepEqual(atOnce(matchListSteps(parseSql(text))), []);
});
