import assert from "node:assert/strict";
import { Index } from "@lancedb/lancedb";
import { Bool, Table, vectorFromArray } from "apache-arrow";
import { test } from "vitest";
import { MENDED, openBareTable } from "../../../../../../test/fixtures/dir/bare-engine.ts";

test("the engine alone misses the row with a null where an index answers a negated truth", async (t) => {
  const table = await openBareTable(t, new Table({ b: vectorFromArray([true, false, null], new Bool()) }));
  const condition = "NOT (b IS TRUE)";
  assert.equal(await table.countRows(condition), 2);
  await table.createIndex("b", { config: Index.bitmap() });
  assert.equal(await table.countRows(condition), 1, MENDED);
});
