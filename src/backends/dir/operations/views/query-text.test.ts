import assert from "node:assert/strict";
import { test } from "vitest";
import { isLanceError } from "../../../../namespace/errors.ts";
import { parseViewQuery } from "./query-text.ts";

test("a query is split into columns, table, condition and limit", () => {
  assert.deepEqual(
    parseViewQuery(
      "select id, s.x, `odd name`, price * 2 AS \"twice\", coalesce(a, 'x, from y') as c FROM ns.sub.t WHERE id > 1 and b = 'limit 2' LIMIT 10;",
    ),
    {
      columns: [
        ["id", "id"],
        ["x", "s.x"],
        ["odd name", "`odd name`"],
        ["twice", "price * 2"],
        ["c", "coalesce(a, 'x, from y')"],
      ],
      source: ["ns", "sub", "t"],
      where: "id > 1 and b = 'limit 2'",
      limit: 10,
    },
  );
  assert.deepEqual(parseViewQuery("SELECT * FROM ns$t"), {
    columns: [],
    source: ["ns", "t"],
    where: undefined,
    limit: undefined,
  });
  assert.deepEqual(parseViewQuery('SELECT a FROM "my-ns".`t.1`').source, ["my-ns", "t.1"]);
});

test("names in double quotes become names in backticks, which the engine does not take for texts", () => {
  const { columns, where } = parseViewQuery(
    `SELECT "id", "s"."a b", "x" * 2 AS "y", '"z"' AS z FROM "t" WHERE "a""b" = 'it''s "d"' AND "p\`q" > 1`,
  );
  assert.deepEqual(columns, [
    ["id", "`id`"],
    ["a b", "`s`.`a b`"],
    ["y", "`x` * 2"],
    ["z", `'"z"'`],
  ]);
  assert.equal(where, "`a\"b` = 'it''s \"d\"' AND `p``q` > 1");
});

test("text that is not such a query is refused", () => {
  for (const text of [
    "",
    "{}",
    "DELETE FROM t",
    "SELECT a",
    "SELECT a FROM",
    "SELECT FROM t",
    "SELECT a, FROM t",
    "SELECT *, a FROM t",
    "SELECT DISTINCT a FROM t",
    "SELECT a + 1 FROM t",
    "SELECT a AS x, b AS x FROM t",
    "SELECT a AS 'x' FROM t",
    "SELECT a FROM t, u",
    "SELECT a FROM t u",
    "SELECT a FROM t JOIN u ON t.a = u.a",
    "SELECT a FROM my-table",
    "SELECT a FROM t WHERE",
    "SELECT a FROM t GROUP BY a",
    "SELECT a FROM t WHERE a > 1 GROUP BY a",
    "SELECT a FROM t WHERE a > 1 ORDER BY a",
    "SELECT a FROM t LIMIT x",
    "SELECT a FROM t LIMIT 1 OFFSET 2",
    "SELECT a FROM t; SELECT b FROM t",
    "SELECT a FROM t UNION SELECT a FROM u",
    "SELECT a FROM (SELECT a FROM t)",
    "SELECT a FROM t -- all",
    "SELECT a FROM t WHERE b = 'open",
  ]) {
    assert.throws(
      () => parseViewQuery(text),
      (error) => isLanceError(error, "InvalidInput"),
      text,
    );
  }
});
