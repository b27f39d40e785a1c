import assert from "node:assert/strict";
import { Int8, Int32, Int64, Table, tableFromIPC, tableToIPC, Uint8, vectorFromArray } from "apache-arrow";
import { type TestContext, test } from "vitest";
import {
  failsWith,
  openClient,
  temporaryDirectory,
} from "../../../../../../test/fixtures/dir/directory-backend.ts";
import { parseSql } from "../../sql/trees.ts";
import { exactSum } from "./exact-sums.ts";

async function openTable(t: TestContext) {
  const client = await openClient(t, await temporaryDirectory(t));
  const rows = new Table({
    count: vectorFromArray([0, 2, null], new Uint8()),
    small: vectorFromArray([1, 2, null], new Int8()),
    whole: vectorFromArray([1, 2, null], new Int32()),
    long: vectorFromArray([1n, 2n ** 63n - 1n, null], new Int64()),
  });
  await client.upload("createTable", "t", {}, tableToIPC(rows, "stream"));
  const values = async (column: string) => [
    ...(tableFromIPC(await client.query("t")).getChild(column) ?? []),
  ];
  return { client, values };
}

for (const [column, expression] of [
  ["count", "count - 1"],
  ["small", "(100 * `small`)"],
  ["whole", "whole + 2147483647"],
  ["long", "long + 1"],
] as const)
  test(`an update of ${column} to ${expression} fails where the result is out of range, and changes nothing`, async (t) => {
    const { client, values } = await openTable(t);
    const before = await values(column);
    await assert.rejects(
      async () => client.call("updateTable", "t", { updates: [{ column, expression }] }),
      failsWith("TableSchemaValidationError"),
    );
    assert.deepEqual(await values(column), before);
    const columns = { columnAliases: { sum: expression } };
    await assert.rejects(client.query("t", { columns }), failsWith("TableSchemaValidationError"));
  });

test("sums of a column and a number keep its type, and are null where it is", async (t) => {
  const { client, values } = await openTable(t);
  const updates = ["count + 1", "small * -3", "10 - whole", "long - 1"].map((expression) => ({
    column: /[a-z]+/.exec(expression)?.[0] ?? "",
    expression,
  }));
  await client.call("updateTable", "t", { updates });
  const all = await Promise.all(updates.map(({ column }) => values(column)));
  assert.deepEqual(all, [
    [1, 3, null],
    [-3, -6, null],
    [9, 8, null],
    [0n, 2n ** 63n - 2n, null],
  ]);
  const columns = { columnAliases: { sum: "small * 2" } };
  const type = tableFromIPC(await client.query("t", { columns })).schema.fields[0]?.type;
  assert.equal(String(type), "Int8");
});

test("expressions that are not the sum of an integer column and an integer keep their text", () => {
  const fields = [{ name: "a", type: { name: "int", bits: 8, signed: true } as const }].map((field) => ({
    ...field,
    nullable: true,
    children: [],
    dictionary: undefined,
    metadata: {},
  }));
  for (const text of ["a", "a - 1 - 1", "a * 1.5", "b - 1", "a - b", "a / 2", "-a", "'a - 1'", "abs(a - 1)"])
    assert.equal(exactSum(parseSql(text), fields), undefined);
});
