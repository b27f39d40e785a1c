import assert from "node:assert/strict";
import { test } from "vitest";
import { textTable } from "./text-table.ts";

test("a table gives each column the width of its longest cell", () => {
  assert.equal(
    textTable([
      ["id", "name"],
      ["1", "a"],
      ["100", "b"],
    ]),
    "id   name\n1    a\n100  b\n",
  );
});

test("a table may have more rows than a call has arguments", () => {
  const rows = Array.from({ length: 300_000 }, (_, row) => [String(row)]);
  assert.equal(textTable(rows).split("\n").length, rows.length + 1);
});
