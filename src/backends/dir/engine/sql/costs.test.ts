import assert from "node:assert/strict";
import { describe, test } from "vitest";
import { failsWith } from "../../../../../test/fixtures/dir/directory-backend.ts";
import { checkExpression, checkExpressions } from "./predicate.ts";

const refused = (sql: string, reason: RegExp) =>
  assert.throws(
    () => checkExpression(sql),
    (error: Error) => failsWith("InvalidInput")(error) && reason.test(error.message),
    sql,
  );

describe("the cost of an expression", () => {
  test("patterns must be constants in every function and operator that has one", () => {
    for (const sql of [
      "regexp_like(s, s)",
      "regexp_like(s, s || '(a{0,60}){0,60}')",
      "regexp_like(s, 'a' || 'b')",
      "regexp_match(s, lower('a'))",
      "regexp_count(s, s)",
      "regexp_instr(s, s)",
      "regexp_replace(s, s, 'b')",
      "regexp_like(s, `s`)",
      "regexp_like(s, X'61')",
      "s LIKE t",
      "s NOT ILIKE (t)",
      "s LIKE 'a' || t",
      "s LIKE '%' || t || '%'",
      "s LIKE ('a' || t)",
      "s LIKE concat(t, '%')",
      "s LIKE CASE WHEN true THEN t END",
      "s SIMILAR TO t",
      "s RLIKE t",
      "s REGEXP t",
    ]) {
      refused(sql, /must be a (?:string|text)/);
    }
  });

  test("flags are letters that leave the pattern as it is written", () => {
    checkExpression("regexp_like(s, 'a', 'i')");
    for (const flags of ["t", "'x'", "'i)(a{0,60}'", "lower('i')"]) {
      refused(`regexp_like(s, 'a', ${flags})`, /flags/);
      refused(`regexp_count(s, 'a', 1, ${flags})`, /flags/);
      refused(`regexp_instr(s, 'a', 1, 1, ${flags})`, /flags/);
    }
    refused("regexp_like(s, '(?ix) a # [')", /flag x/);
  });

  test("a pattern has a bounded number of steps, however its repetitions are nested", () => {
    for (const pattern of [
      "(a{0,60}){0,60}",
      "((a{9}){9}){9}",
      "a{10}{10}{10}",
      "a{00000000000000000000000000000000000000000000000000000000000000000001000}",
      "a{ 1000 }",
      "(?:\\w{3} ){100}",
      "[]a]{300}",
      "[^]a[b]]{300}",
      "\\p{Greek}{300}",
      "(|){1000}",
      "(?P<name>.{20}){20}",
      ".".repeat(257),
      "a".repeat(1030),
      "a?".repeat(257),
    ]) {
      refused(`regexp_like(s, '${pattern}')`, /steps/);
    }
    refused(`s LIKE '${"%a".repeat(300)}'`, /steps/);
    refused(`s ILIKE '%a${"_".repeat(300)}'`, /steps/);
    refused(`s LIKE '%${"a".repeat(5000)}%'`, /4096/);
  });

  test("usual patterns pass", () => {
    for (const sql of [
      "s LIKE '%needle%' AND t NOT ILIKE 'a_b%' OR u LIKE ('x')",
      "s LIKE 'it''s' AND a = 1",
      "s LIKE NULL OR s LIKE 1",
      "CASE WHEN s LIKE 'a%' THEN 1 ELSE 2 END",
      `s LIKE '%${"a".repeat(4000)}%'`,
      "regexp_like(s, '^[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\\.[A-Za-z]{2,24}$')",
      "regexp_like(s, '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}')",
      "regexp_replace(s, '\\s+', ' ', 'g') = 'a b'",
      Array.from({ length: 4000 }, (_, i) => `s LIKE '%q${i}%'`).join(" OR "),
      `array_distance(v, [${Array(1536).fill("0.5").join(",")}]) < 1`,
      Array.from({ length: 200 }, (_, i) => `lower(s) = 'v${i}'`).join(" OR "),
    ]) {
      checkExpression(sql);
    }
  });

  test("all calls and patterns together have a bounded number of steps", () => {
    refused(Array.from({ length: 7000 }, (_, i) => `s LIKE '%q${i}%'`).join(" OR "), /512 steps/);
    refused(Array.from({ length: 300 }, (_, i) => `left(s, ${i}) = 'a'`).join(" OR "), /512 steps/);
    refused(Array.from({ length: 20 }, (_, i) => `regexp_like(s, '.{30}${i}')`).join(" OR "), /512 steps/);
    refused(`regexp_replace(s, 'a*', '${"b".repeat(64)}', 'g') = t`, /512 steps/);
    const each = Array.from({ length: 60 }, (_, i) => [
      `to_hex(${i}) || left(s, ${i}) || right(s, ${i})`,
      "a",
    ]);
    checkExpressions(each.slice(30) as [string, string][]);
    assert.throws(() => checkExpressions([...each, ...each] as [string, string][]), /all expressions/);
  });

  test("values that are put together have a bounded number", () => {
    const many = Array(200).fill("s").join(",");
    for (const sql of [
      `concat(${many})`,
      `concat_ws(',', ${many})`,
      `make_array(${many})`,
      `[${many}]`,
      `array_concat(${many})`,
      `named_struct(${Array.from({ length: 200 }, (_, i) => `'k${i}',s`).join(",")})`,
      `(${Array(100).fill("s").join("||")}) = (${Array(100).fill("s").join("||")})`,
      `repeat(concat(${Array(20).fill("s").join(",")}), 16)`,
    ]) {
      refused(sql, /put more than 128 values together/);
    }
    checkExpression("repeat(concat(s, t), 16)");
  });
});
