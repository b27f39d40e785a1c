import assert from "node:assert/strict";
import { Table, Utf8, vectorFromArray } from "apache-arrow";
import { test } from "vitest";
import { MENDED, openBareTable } from "../../../../../../test/fixtures/dir/bare-engine.ts";

test("the engine alone takes a match that found nothing for a list", async (t) => {
  const table = await openBareTable(t, new Table({ a: vectorFromArray(["x", "y"], new Utf8()) }));
  assert.equal(await table.countRows("regexp_match(a, 'x') IS NOT NULL"), 2, MENDED);
});
