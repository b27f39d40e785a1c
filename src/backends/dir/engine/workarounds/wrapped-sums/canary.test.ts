import assert from "node:assert/strict";
import { Table, Uint8, vectorFromArray } from "apache-arrow";
import { test } from "vitest";
import { MENDED, openBareTable } from "../../../../../../test/fixtures/dir/bare-engine.ts";

test("the engine alone takes 1 from an unsigned 0 and gets its largest number", async (t) => {
  const table = await openBareTable(t, new Table({ count: vectorFromArray([0], new Uint8()) }));
  await table.update({ valuesSql: { count: "count - 1" } });
  assert.deepEqual(
    (await table.query().toArray()).map(({ count }) => count),
    [255],
    MENDED,
  );
});
