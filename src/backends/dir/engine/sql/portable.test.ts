import assert from "node:assert/strict";
import { test } from "vitest";
import type { ArrowField } from "../../../../arrow/schema.ts";
import { whyNotPortable } from "./portable.ts";

const field = (name: string, more: Partial<ArrowField> = {}): ArrowField => ({
  ...{ name, nullable: true, type: { name: "int", bits: 64, signed: true } },
  ...{ children: [], dictionary: undefined, metadata: {}, ...more },
});

const FIELDS = [
  field("a"),
  field("b c"),
  field("word", { type: { name: "utf8" } }),
  field("half", { type: { name: "float", bits: 16 } }),
  field("blob", { metadata: { "lance-encoding:blob": "true" } }),
  field("list", { type: { name: "list" }, children: [field("item")] }),
];

for (const expression of [
  "a + 1",
  "`b c` * -2.5 % 3",
  "concat(upper(word), 'x') || 'none'",
  "cast(a as int)",
  "try_cast(word as decimal(10, 2))",
  "a in (1, 2) or word like 'x%' or a between 1 and 3",
  "word is not null and a is not true",
  "coalesce(lower(trim(word)), '') || '.'",
  "date_trunc('day', a)",
])
  test(`another engine computes ${expression}`, async () => {
    assert.equal(await whyNotPortable(expression, FIELDS), undefined);
  });

for (const [expression, reason] of [
  ["now()", "the function now"],
  ["case when a > 0 then 1 else 2 end", "a part of its syntax"],
  ["a is distinct from 2", "the operator distinct"],
  ["current_date", "the word current_date"],
  ["random() + a", "the function random"],
  ["a + sin(a)", "the function sin"],
  ["half + 1", "the column half"],
  ["list is null", "the column list"],
  ["blob is null", "the column blob"],
  ["A + 1", "the word A"],
  ["_rowid", "the word _rowid"],
  ["arrow_cast(a, 'Int8')", "the function arrow_cast"],
  ["cast(a as timestamp)", "the type of a cast"],
  ["cast(random() as int)", "the function random"],
  ["place.x", "fields of structs"],
  ["[a][1]", "a part of its syntax"],
  ["date '2020-01-01'", "a part of its syntax"],
  ['word || "a"', "the word a"],
] as const)
  test(`no other engine computes ${expression}`, async () => {
    assert.equal(await whyNotPortable(expression, FIELDS), reason);
  });
