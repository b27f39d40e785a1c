import assert from "node:assert/strict";
import { test } from "vitest";
import type { ArrowField } from "../../../../arrow/schema.ts";
import { exactMatch, exactValue, wholeExpression } from "./exact-filter.ts";
import { readToEnd } from "./tree.ts";

const field = (name: string, type: ArrowField["type"]): ArrowField => ({
  name,
  type,
  nullable: true,
  children: [],
  dictionary: undefined,
  metadata: {},
});
const fields = [
  field("a", { name: "int", bits: 8, signed: true }),
  field("b", { name: "float", bits: 32 }),
  field("s", { name: "utf8" }),
];

test("several corrections change parts of the same condition", async () => {
  for (const [condition, exact] of [
    [
      "regexp_match(CASE WHEN b = 0.1 THEN s END, 'x') IS NULL",
      "coalesce(regexp_match(CASE WHEN b = 0.10000000149011612 THEN s END, 'x')) IS NULL",
    ],
    [
      "a IN (1, NULL) AND-0.1 = b AND a IN (2)",
      "a IN (1, NULL) AND random() <= 2 AND-0.10000000149011612 = b AND random() <= 2 AND a IN (2)",
    ],
    ["b = 1 OR-(100 + 100) = a", "b = 1 OR CAST(-(100 + 100) AS BIGINT) = a"],
    ["a = 100 + 100 AND b = 0.1", "a = CAST(100 + 100 AS BIGINT) AND b = 0.10000000149011612"],
  ] as const) {
    assert.equal(await exactMatch(condition, fields), exact);
  }
});

test.each([
  "a > 1\ufeff AND b = 2",
  "a li\u212ae 'x'",
  "a = 1 AND case when a = 1 then s",
  "a > 1 b = 2",
  "a ISNULL",
  "a NOT",
  "a |/ 2",
  "(a) (b)",
  "a BETWEEN 1 2 AND 3",
])("%s is read to its end", async (text) => {
  for (const read of [exactMatch, exactValue]) assert.equal(await read(text, fields), readToEnd(text));
  assert.equal(await wholeExpression(text, fields), readToEnd(text));
});

test("a value that is the name of a column stays as it is", async () => {
  const named = [field("my col", { name: "utf8" }), field("a-1", { name: "int", bits: 8, signed: true })];
  for (const text of ["my col", "My Col", "a-1"]) {
    assert.equal(await exactValue(text, named), text);
    assert.equal(await wholeExpression(text, named), text);
  }
  assert.equal(await exactMatch("my col", named), readToEnd("my col"));
});

test("many corrections take a time that grows with their number", async () => {
  const condition = `b IN (${Array.from({ length: 45_000 }, () => "0.1").join(",")})`;
  assert.match(await exactMatch(condition, fields), /^b IN \(0\.10000000149011612,/);
});
