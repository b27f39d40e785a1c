import assert from "node:assert/strict";
import { Float32, Int32, Table, tableFromIPC, tableToIPC, Utf8, vectorFromArray } from "apache-arrow";
import { type TestContext, test } from "vitest";
import {
  failsWith,
  openClient,
  temporaryDirectory,
} from "../../../../../test/fixtures/dir/directory-backend.ts";

const ROWS = 200;

/** Opens a table with an index of words, in which each row has the word "fox". */
async function openTexts(t: TestContext) {
  const client = await openClient(t, await temporaryDirectory(t));
  const ids = Array.from({ length: ROWS }, (_, id) => id);
  const rows = new Table({
    ID: vectorFromArray(ids, new Int32()),
    ratio: vectorFromArray(
      ids.map((id) => id / 10),
      new Float32(),
    ),
    body: vectorFromArray(
      ids.map((id) => `${"red ".repeat(id % 7)}fox`),
      new Utf8(),
    ),
  });
  await client.upload("createTable", "t", {}, tableToIPC(rows, "stream"));
  await client.call("createTableIndex", "t", { column: "body", indexType: "FTS" });
  const fox = { fullTextQuery: { stringQuery: { query: "fox", columns: ["body"] } } };
  const search = async (request: object) => {
    const found = tableFromIPC(await client.query("t", { ...fox, ...request }));
    // Rows of an equal score have no order.
    return ([...(found.getChild("ID") ?? [])] as number[]).sort((a, b) => a - b);
  };
  return { search, query: (request: object) => client.query("t", { ...fox, ...request }) };
}

const ALL = { k: BigInt(ROWS) };

test("a filter after a search for words selects the rows that it selects in a scan", async (t) => {
  const { search } = await openTexts(t);
  for (const filter of [
    "ratio = 0.3",
    "ratio <= 0.3",
    "ratio in (0.3, 0.4) or ID = 7",
    "id > 150",
    "regexp_match(body, '^red')",
    "not regexp_match(body, '^red') and ratio > 3.5",
    "_rowaddr > 190",
  ]) {
    const before = await search({ ...ALL, filter });
    assert.ok(before.length > 0 && before.length < ROWS, filter);
    for (const columns of [
      undefined,
      { columnNames: ["ID"] },
      { columnAliases: { ID: "ID", _rowid: "ID + 1" } },
    ])
      assert.deepEqual(await search({ ...ALL, filter, prefilter: false, columns }), before, filter);
  }
});

test("a filter after a search for words that a scan refuses is refused, also if the search finds nothing", async (t) => {
  const { query } = await openTexts(t);
  const nothing = { fullTextQuery: { stringQuery: { query: "wolf", columns: ["body"] } } };
  for (const [filter, error] of [
    ["ID > '5'", "InvalidInput"],
    ["ratio > '5'", "InvalidInput"],
    ["null", "InvalidInput"],
    ["_score > 1", "TableColumnNotFound"],
  ] as const) {
    await assert.rejects(query({ filter, prefilter: false }), failsWith(error), filter);
    await assert.rejects(query({ ...nothing, filter, prefilter: false }), failsWith(error), filter);
  }
});
