import assert from "node:assert/strict";
import {
  Field,
  Float16,
  Float32,
  Int8,
  Int32,
  makeData,
  Struct,
  Table,
  TimestampSecond,
  tableFromIPC,
  tableToIPC,
  Vector,
  vectorFromArray,
} from "apache-arrow";
import { type TestContext, test } from "vitest";
import {
  failsWith,
  openClient,
  temporaryDirectory,
} from "../../../../../../test/fixtures/dir/directory-backend.ts";
import { idsOf } from "../../../../../../test/fixtures/dir/rows.ts";
import type { ArrowField } from "../../../../../arrow/schema.ts";
import { atOnce } from "../../../../../runtime/pace.ts";
import { exactMatch } from "../../sql/exact-filter.ts";
import { printSql } from "../../sql/tree.ts";
import { parseSql } from "../../sql/trees.ts";
import { exactLiteralSteps } from "./exact-literals.ts";

const exactly = (text: string, fields: readonly ArrowField[]) =>
  printSql(text, atOnce(exactLiteralSteps(parseSql(text), fields)));

const RATIOS = [0.1, 0.3, null, Number.POSITIVE_INFINITY];

function ipcOf(ids: readonly number[]): Uint8Array {
  const ratios = ids.map((id) => RATIOS[id] as number | null);
  const seconds = makeData({ type: new TimestampSecond(), data: BigInt64Array.from(ids, BigInt) });
  return tableToIPC(
    new Table({
      id: vectorFromArray(ids, new Int32()),
      ratio: vectorFromArray(ratios, new Float32()),
      half: vectorFromArray(ratios, new Float16()),
      inner: vectorFromArray(
        ratios.map((ratio) => ({ ratio })),
        new Struct([new Field("ratio", new Float32(), true)]),
      ),
      small: vectorFromArray(
        ids.map((id) => 100 + id),
        new Int8(),
      ),
      seconds: new Vector([seconds]),
    }),
    "stream",
  );
}

async function openTable(t: TestContext) {
  const client = await openClient(t, await temporaryDirectory(t));
  await client.upload("createTable", "t", {}, ipcOf([0, 1, 2, 3]));
  return client;
}

for (const [filter, ids] of [
  ["NOT (ratio = 0.1)", [1, 3]],
  ["(ratio IN (0.1, -0.3)) IS TRUE", [0]],
  ["NOT (`ratio` BETWEEN 0.1 AND (0.3)) OR id = 2", [2, 3]],
  ["inner.ratio IN (0.3, 0.5)", [1]],
  ["NOT (0.3 <> inner.ratio)", [1]],
  ["NOT (half IN (0.1, 70000.0))", [1, 3]],
  ["ratio = 1e40", []],
  ["ratio > 1e40", [3]],
  ["small < 100 + 100", [0, 1, 2, 3]],
  ["small IN (50 + 50, 1)", [0]],
  ["seconds <= TIMESTAMP '1970-01-01 00:00:01.000'", [0, 1]],
] as const)
  test(`the condition ${filter} compares its column with the constants that it names`, async (t) => {
    const client = await openTable(t);
    assert.deepEqual(idsOf(await client.query("t", { filter })).sort(), ids);
    assert.equal((await client.call("countTableRows", "t", { predicate: filter })).count, BigInt(ids.length));
  });

test("deletions, updates and merges where a column does not equal a 32-bit float leave the equal rows as they are", async (t) => {
  const client = await openTable(t);
  const [predicate, updates] = ["NOT (ratio = 0.1)", [{ column: "id", expression: "id" }]];
  assert.equal((await client.call("updateTable", "t", { predicate, updates })).updatedRows, 2n);
  const update = { on: ["id"], whenMatchedUpdateAll: true };
  const matching = { ...update, whenMatchedUpdateAllFilt: "NOT (target.ratio = 0.3 OR source.ratio = 0.1)" };
  const merged = await client.upload("mergeInsertIntoTable", "t", matching, ipcOf([0, 1, 3]));
  assert.equal(merged.numUpdatedRows, 1n);
  const removal = { on: ["id"], whenNotMatchedBySourceDelete: true };
  const missing = { ...removal, whenNotMatchedBySourceDeleteFilt: predicate };
  const removed = await client.upload("mergeInsertIntoTable", "t", missing, ipcOf([1]));
  assert.equal(removed.numDeletedRows, 1n);
  assert.equal((await client.call("deleteFromTable", "t", { predicate })).numDeletedRows, 1n);
  assert.deepEqual(idsOf(await client.query("t")).sort(), [0, 2]);
});

test("an expression of a query, an update and a new column compares 32-bit floats as a condition does", async (t) => {
  const client = await openTable(t);
  const expression = "NOT (ratio = 0.1)";
  const columns = { columnNames: [], columnAliases: { id: "id", other: expression } };
  const result = tableFromIPC(await client.query("t", { columns }));
  assert.deepEqual([...(result.getChild("other") ?? [])], [false, true, null, true]);
  await client.call("alterTableAddColumns", "t", { newColumns: [{ name: "other", expression }] });
  const updates = [{ column: "small", expression: `CAST(${expression} AS TINYINT)` }];
  await client.call("updateTable", "t", { updates });
  for (const filter of ["other", "small = 1"])
    assert.deepEqual(idsOf(await client.query("t", { filter })).sort(), [1, 3]);
});

for (const time of ["TIMESTAMP '1970-01-01 00:00:00.5'", "to_timestamp('1970-01-01T00:00:00.001')"])
  test(`a column of whole seconds is not compared with ${time}`, async (t) => {
    const client = await openTable(t);
    for (const filter of [`seconds < ${time}`, `id = 1 OR NOT (seconds IN (${time}))`])
      await assert.rejects(client.query("t", { filter }), failsWith("InvalidInput"), filter);
  });

test("a number between two columns is rounded once", () => {
  const type = { name: "float", bits: 32 } as const;
  const fields = ["a", "b"].map((name) => ({
    name,
    type,
    nullable: true,
    children: [],
    dictionary: undefined,
    metadata: {},
  }));
  assert.equal(exactly("a = 0.1 = b", fields), "a = 0.10000000149011612 = b");
});

test("lets other work run while a condition with very many constants is prepared", async () => {
  let turned = false;
  setImmediate(() => {
    turned = true;
  });
  const numbers = Array.from({ length: 49_000 }, (_, i) => i);
  await exactMatch(`id IN (${numbers.join(", ")}) OR id NOT IN (1, 2)`, []);
  assert.ok(turned);
});

test("an expression whose constants the engine converts correctly keeps its text", () => {
  const floats = [{ name: "a", type: { name: "float", bits: 32 } as const }];
  const integers = [{ name: "i", type: { name: "int", bits: 8, signed: true } as const }];
  const fields = [...floats, ...integers].map((field) => ({
    ...field,
    nullable: true,
    children: [],
    dictionary: undefined,
    metadata: {},
  }));
  for (const text of [
    "a = 0.5 OR b = 0.1",
    "a + 0.1 = b",
    "a = 0.1 + b",
    "abs(a) = 0.1",
    "i = 5",
    "i + 1 = 2",
  ])
    assert.equal(exactly(text, fields), text);
});
