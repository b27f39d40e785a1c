import assert from "node:assert/strict";
import { Int32, Table, vectorFromArray } from "apache-arrow";
import { test } from "vitest";
import { MENDED, openBareTable } from "../../../../../../test/fixtures/dir/bare-engine.ts";

test("the engine alone joins two lists, and finds the row with a null", async (t) => {
  const table = await openBareTable(t, new Table({ a: vectorFromArray([1, 2, null], new Int32()) }));
  assert.equal(await table.countRows("a NOT IN (1) OR a NOT IN (2)"), 3, MENDED);
});
