import assert from "node:assert/strict";
import { Bool, Float32, Int32, Table, tableToIPC, Utf8, vectorFromArray } from "apache-arrow";
import { type TestContext, test } from "vitest";
import { openClient, temporaryDirectory } from "../../../../../test/fixtures/dir/directory-backend.ts";
import { idsOf } from "../../../../../test/fixtures/dir/rows.ts";

const NUMBERS = [null, 1, 1, 2, 2];
const TEXTS = ["a", "a", "b", "b", null];
const FLAGS = [null, true, false, null, true];
const RATIOS = [0.1, 0.3, 0.5, 0.7, null];

/** Creates a table and its indices, by column. */
async function openIndexed(t: TestContext, indices: Readonly<Record<string, string>>) {
  const client = await openClient(t, await temporaryDirectory(t));
  const rows = new Table({
    id: vectorFromArray([...NUMBERS.keys()], new Int32()),
    number: vectorFromArray(NUMBERS, new Int32()),
    text: vectorFromArray(TEXTS, new Utf8()),
    flag: vectorFromArray(FLAGS, new Bool()),
    ratio: vectorFromArray(RATIOS, new Float32()),
  });
  await client.upload("createTable", "t", {}, tableToIPC(rows, "stream"));
  for (const [column, indexType] of Object.entries(indices))
    await client.call("createTableScalarIndex", "t", { column, indexType });
  return client;
}

for (const indexType of ["BLOOMFILTER", "ZONEMAP"]) {
  test(`a condition with a negation finds, updates and deletes all of its rows where another column has a ${indexType} index`, async (t) => {
    const predicate = "number != 1 OR text = 'a'";
    const ids = [0, 1, 3, 4];
    const client = await openIndexed(t, { number: "BTREE", text: indexType });
    assert.equal((await client.call("countTableRows", "t", { predicate })).count, 4n);
    assert.deepEqual(idsOf(await client.query("t", { filter: predicate })).sort(), ids);
    const updates = [{ column: "flag", expression: "flag" }];
    assert.equal((await client.call("updateTable", "t", { predicate, updates })).updatedRows, 4n);
    assert.equal((await client.call("deleteFromTable", "t", { predicate })).numDeletedRows, 4n);
    assert.deepEqual(idsOf(await client.query("t")), [2]);
  });
}

test("a negated truth selects the rows with a null where the column has an index", async (t) => {
  const client = await openIndexed(t, { flag: "BTREE" });
  for (const [predicate, count] of [
    ["NOT (flag IS TRUE)", 3n],
    ["NOT (flag IS FALSE)", 4n],
  ] as const)
    assert.equal((await client.call("countTableRows", "t", { predicate })).count, count, predicate);
});

test("a condition with a negation compares a column as the engine does, so that a deletion spares the equal row", async (t) => {
  const predicate = "ratio != 0.3 AND id >= 0";
  const client = await openIndexed(t, { text: "ZONEMAP" });
  assert.equal((await client.call("countTableRows", "t", { predicate })).count, 3n);
  assert.deepEqual(idsOf(await client.query("t", { filter: predicate })).sort(), [0, 2, 3]);
  const found = { predicate: "NOT (flag IS TRUE) AND ratio = 0.1 AND regexp_match(text, 'a')" };
  assert.equal((await client.call("countTableRows", "t", found)).count, 1n);
  assert.equal((await client.call("deleteFromTable", "t", { predicate })).numDeletedRows, 3n);
  assert.deepEqual(idsOf(await client.query("t")), [1, 4]);
});

test("an index is used for conditions that it answers correctly", async (t) => {
  const client = await openIndexed(t, { number: "BTREE", text: "BLOOMFILTER" });
  const planOf = async (filter: string) =>
    (await client.call("explainTableQueryPlan", "t", { query: { filter } })).plan;
  assert.match(await planOf("number = 1 OR text = 'a'"), /ScalarIndexQuery/);
  assert.match(await planOf("NOT number = 1"), /ScalarIndexQuery/);
  assert.doesNotMatch(await planOf("NOT number = 1 OR text = 'a'"), /ScalarIndexQuery/);
});
