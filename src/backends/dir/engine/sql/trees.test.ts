import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { namesIn, parseSql } from "./trees.ts";

const cases: [expression: string, names: string[]][] = [
  ["price * 2", ["price"]],
  ['Price + `Größe` + "x"', ["price", "größe", "x"]],
  ["`a``b`", ["a`b"]],
  ["point.x + 1", ["point"]],
  ["`point` . `x`", ["point"]],
  ["point['x']", ["point"]],
  ["upper(concat(a, 'b'))", ["a"]],
  ["CAST(a AS date)", ["a", "as"]],
  ["a::int", ["a"]],
  ["DATE '2024-01-31'", []],
  ["X'00'", []],
  // The engine reads the column, and ignores the rest.
  ["1 = a 'b'", ["a"]],
  ["'it''s a'", []],
  ["date", ["date"]],
  ["make_array(a)[1]", ["a"]],
];

describe("names that may be columns", () => {
  for (const [expression, names] of cases) {
    it(`of ${expression} are ${names.join(" and ") || "none"}`, () => {
      assert.deepEqual([...namesIn(parseSql(expression))], names);
    });
  }

  it("are on both sides of an operator of words", () => {
    const names = namesIn(parseSql("a IN (b) AND c LIKE 'd'"));
    for (const name of ["a", "b", "c"]) assert.ok(names.has(name), name);
    assert.ok(!names.has("d"));
  });
});
