import assert from "node:assert/strict";
import { describe, it, test } from "vitest";
import { isLanceError } from "../../../../namespace/errors.ts";
import { atOnce } from "../../../../runtime/pace.ts";
import { MAX_CHAIN, MAX_CONDITIONS } from "./bounds.ts";
import { checkExpression, predicateSteps } from "./predicate.ts";
import { tokenizeSql } from "./tokens.ts";

const refuses = (text: string) =>
  assert.throws(
    () => checkExpression(text),
    (error) => isLanceError(error, "InvalidInput"),
    text,
  );

test("accepts a single expression, whatever its quotes and brackets contain", () => {
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
    "x = X'0aff'",
    "a = -1 and b between -2 and 3 or not (c or d)",
    "((a and b) or (c and d)) and not (e = 1)",
    "name = 'C:\\dir' and length(trim(lower(name))) > 2",
    "replace(name, '-', '') || lpad(name, 10, '0') = repeat('ab', 3)",
    "cast(a as decimal(10, 2)) > 1 and date_trunc('day', at) = timestamp '2024-01-01 00:00:00'",
    "arrow_cast(a, 'Time32(Second)') is not null",
    "arrow_cast([1.0, 2.0], 'FixedSizeList(2, Float32)')",
    "array_has_any(tags, ['a', 'b', 'c'])",
  ]) {
    checkExpression(text);
  }
});

test("refuses text that the engine would silently ignore", () => {
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
    "a = 1or b = 2",
    "x'\\' || '+1'",
    "E'\\' + 1 + '' ",
    "U&'a' = b and u'x'",
    "größe$$ ' $$ + 1 '",
    "a = (select 1)",
    "abs((with x as (select 1) select 1))",
    "a NOT NULL",
    // The engine takes the character behind such marks for a part of the word, and the string for its code.
    "upper(s) OVER #'x = repeat(s, 2000000000) AND lower(s) OVER #'y = s",
    "upper(s) OVER @@'x = repeat(s, 2000000000) AND lower(s) OVER @@'y = s",
    "abs#(a)",
    "a @> b",
    "a <@b",
    // A function with parameters, of which the engine takes the second list alone.
    "repeat('a', 1)('a', 2000000000)",
    "regexp_like('a', 'b')(s, t)",
    "coalesce(s ~ t, false)",
    "s !~* 'x'",
    "~(a = 1) OR b",
    // The engine reads U+0085 as a space.
    "levenshtein\u0085(s, s) = 1",
    "repeat\u0085('a', 2000000000) = s",
    "s SIMILAR\u0085TO t",
  ]) {
    refuses(text);
  }
});

test("takes NOT NULL, marks and brackets where they have one meaning", () => {
  for (const text of [
    "NOT NULL",
    "a = 1 AND NOT NULL",
    "a IS NOT NULL",
    "#a = @b",
    "a IN (1) AND (b)",
    "f IN ((1), (2))",
  ])
    checkExpression(text);
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

test("a text past a bound is read no further than that bound", () => {
  const unread = " 'a quote that nothing closes";
  const conditions = Array.from({ length: MAX_CONDITIONS + 1 }, () => "b").join(" and ");
  for (const [text, bound] of [
    [`1${"+1".repeat(60_000)}`, /more than 250 names/],
    [`${"(".repeat(10_000)}true`, /more than 32 brackets/],
    [`${"abs(".repeat(14)}`, /more than 12 calls/],
    [`s${".a".repeat(1000)}`, /more than 12 calls/],
    [`${conditions} and b`, /more than 8000 conditions/],
    [`${`a${"+1".repeat(120)} > 1 and `.repeat(100)} b`, /chains of operators are too many/],
    ["a, b", /not several/],
    ["a limit 5", /without LIMIT/],
    ["a; b", /without a semicolon/],
    ["a = ? or b", /placeholders/],
  ] as const) {
    assert.throws(() => checkExpression(text + unread), bound);
  }
});

test("refuses decimals with more digits than their type holds, on which the engine fails", () => {
  for (const text of [
    "cast(a as decimal(39, 2)) = 1",
    "a::decimal(294, 2) = 1",
    "arrow_cast(a, 'Decimal128(39, 2)') = 1",
    "arrow_try_cast(a, 'Decimal32( 10, 2)') = 1",
  ]) {
    refuses(text);
  }
  checkExpression("cast(a as decimal(38, 2)) = 1 and arrow_cast(a, 'Decimal256(76, 2)') = 1");
});

test("long texts are read in linear time", () => {
  const started = performance.now();
  checkExpression(`a in (${"1, ".repeat(49_000)}2)`);
  refuses("'".repeat(300_001));
  refuses(`${"a ".repeat(200_000)}`);
  assert.ok(performance.now() - started < 3000);
});

test("long lists and long chains of conditions pass", () => {
  const many = (count: number, of: (i: number) => string) => Array.from({ length: count }, (_, i) => of(i));
  checkExpression(`id in (${many(10_000, (i) => `-${i}`)})`);
  checkExpression(`name not in (${many(10_000, (i) => `'${i}-0123456789abcdef0123456789abcdef'`)})`);
  checkExpression(many(1000, (i) => `(id = ${i} and name like 'a%')`).join(" or "));
  checkExpression(many(MAX_CONDITIONS, (i) => `id between ${i} and 2`).join(" and "));
  checkExpression(`not ((${many(100, (i) => `a${i} is null`).join(" or ")}) and b)`);
  refuses(many(MAX_CONDITIONS + 1, () => "b").join(" and "));
  refuses(`(${many(300, () => "b").join(" and ")}, 1)`);
  refuses(`coalesce(${many(300, () => "b").join(" and ")}, true)`);
  refuses(`coalesce((${many(300, () => "b").join(" and ")}), true)`);
  refuses(`case when ${many(300, () => "b").join(" and ")} then 1 end`);
  refuses(`((${many(300, () => "b").join(" and ")}) or b) = true`);
  refuses(`${"(".repeat(30)}${many(5000, () => "b").join(" or ")})${" or b".repeat(4000)}${")".repeat(29)}`);
});

test("refuses text that would exhaust the engine's stack or time", () => {
  const units = [
    "+1",
    "||'a'",
    "::bigint",
    " is null",
    " is true",
    " = 1",
    "[1]",
    ".a",
    " between 1 and 2",
    " in (1)",
  ];
  for (const unit of units) refuses(`id${unit.repeat(MAX_CHAIN)}`);
  for (const [open, close] of [
    ["(", ")"],
    ["-(", ")"],
    ["abs(", ")"],
    ["cast(", " as int)"],
    ["not (", ")"],
    ["[", "]"],
  ]) {
    refuses(`${open?.repeat(40)}1${close?.repeat(40)} = 1`);
  }
  for (const prefix of ["not ", "- ", "case when b then ", "interval "]) refuses(`${prefix.repeat(300)}b`);
  for (const path of ["s", "abs(id)", "list[1]", "(s)", "'a'"]) refuses(`${path}${".a".repeat(13)}. > 1`);
  checkExpression(`${"s.a.b.c + ".repeat(20)}lower(t.a.b) > 1`);
  refuses(`id::${"nullable(".repeat(3000)}int${")".repeat(3000)} is null`);
});

test("refuses text that would exhaust the memory", () => {
  for (const text of [
    "lpad('a', 2000000000) = name",
    "lpad(name, id) = name",
    "lpad(name, 10 * 1000000000) = name",
    "repeat(name, 1000000000) = name",
    "REPEAT (name, 1000000000) = name",
    "repeat(repeat(repeat('a', 1000), 1000), 1000) = name",
    "repeat(replace(name, 'a', 'bb'), 2) = name",
    "replace(name, '', 'aaaaaaaa') = name",
    `replace(name, 'a', '${"b".repeat(1000)}') = name`,
    "array_length(range(0, 1000000000)) = 1",
    "array_length(generate_series(1, id)) = 1",
    "array_length(array_repeat(1, 1000000000)) = 1",
    "array_resize([1], 1000000000, 1) = [1]",
    "arrow_cast('a', 'FixedSizeBinary(2147483647)') is null",
    `arrow_cast(null, '${"List(".repeat(1000)}Int8${")".repeat(1000)}') is null`,
    `name || '${"b".repeat(100_000)}' = name`,
    `concat(name, '${"b".repeat(100_000)}') = name`,
    `name = [${"1,".repeat(20_000)}1]`,
    "levenshtein(name, name) > 1",
    "`lpad`('a', 2000000000) = name",
    "nothing(name) = 1",
    "constructor(name) = 1",
  ]) {
    refuses(text);
  }
  checkExpression(`name = '${"b".repeat(100_000)}'`);
});

test("a refusal says the bound and the place", () => {
  assert.throws(
    () => checkExpression(`id${"+1".repeat(200)} > 1`),
    /more than 250 names, values and operators.*\(at character 252\)/,
  );
});

const onePredicate = (predicate: string | undefined) => atOnce(predicateSteps(predicate));

describe("predicateSteps", () => {
  it("passes one expression, whatever its literals and quoted names hold", () => {
    for (const predicate of [
      "id > 1",
      "name = 'a;b'",
      "name = 'it''s; fine'",
      '"odd;name" = 1',
      "`odd;name` = 1",
    ]) {
      assert.equal(onePredicate(predicate), predicate);
    }
  });

  it("passes a missing predicate, and refuses a blank one", () => {
    assert.equal(onePredicate(undefined), undefined);
    for (const blank of ["", "  ", "\t\n"]) {
      assert.throws(
        () => onePredicate(blank),
        (error) => isLanceError(error, "InvalidInput"),
      );
    }
  });

  it("refuses a semicolon outside of quotes", () => {
    for (const predicate of ["id > 1; junk", "id > 1;", ";", "name = 'a' ; id > 1"]) {
      assert.throws(
        () => onePredicate(predicate),
        (error) => isLanceError(error, "InvalidInput"),
        predicate,
      );
    }
  });
});
