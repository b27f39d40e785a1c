import assert from "node:assert/strict";
import { Float32, Table, vectorFromArray } from "apache-arrow";
import { test } from "vitest";
import { MENDED, openBareTable } from "../../../../../../test/fixtures/dir/bare-engine.ts";

test("the engine alone finds a row by a condition and by its negation", async (t) => {
  const table = await openBareTable(t, new Table({ ratio: vectorFromArray([0.1], new Float32()) }));
  const found = await Promise.all(["ratio = 0.1", "NOT (ratio = 0.1)"].map((text) => table.countRows(text)));
  assert.deepEqual(found, [1, 1], MENDED);
});
