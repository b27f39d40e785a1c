import assert from "node:assert/strict";
import { test } from "node:test";
import { isLanceError } from "../../../namespace/errors.ts";
import { checkExpression, tokenizeSql } from "./sql.ts";

const refuses = (text: string) =>
  assert.throws(
    () => checkExpression(text),
    (error) => isLanceError(error, "InvalidInput"),
    text,
  );

test("one expression passes, whatever is inside of quotes and brackets", () => {
  for (const text of [
    "id > 1",
    "a = 'x; -- y, z' and `odd, name` > 1 or \"from\" = 2",
    "coalesce(a, b, 'it''s')",
    "extract(year from at)",
    "case when a > 1 then 'x' else 'y' end",
    "limit > 5 and order = 1",
    "a = limit",
    "a is distinct from b",
    "id::bigint = 1e-5 + .5",
    "struct_column.inner[0] = {a: 1}",
    "größe > 1",
  ]) {
    checkExpression(text);
  }
});

test("what the engine would quietly ignore is refused", () => {
  for (const text of [
    "id; name",
    "id, name",
    "id from t",
    "id where id > 5",
    "(id) order by id",
    "id > 1 group by id",
    "id > 1 limit 5",
    "id as other",
    "id -- comment",
    "id /* comment",
    "a = $1",
    "a = ?",
    "a = :name",
    "a = 'open",
    "a = `open",
    "(a",
    "a)",
    "(a]",
  ]) {
    refuses(text);
  }
});

test("tokens know their place and their depth", () => {
  assert.deepEqual(
    tokenizeSql("f(a) b").map(({ text, start, depth }) => [text, start, depth]),
    [
      ["f", 0, 0],
      ["(", 1, 0],
      ["a", 2, 1],
      [")", 3, 0],
      ["b", 5, 0],
    ],
  );
});

test("long texts are read in linear time", () => {
  const started = performance.now();
  checkExpression(`a in (${"1, ".repeat(200_000)}2)`);
  refuses("'".repeat(300_001));
  assert.ok(performance.now() - started < 3000);
});
