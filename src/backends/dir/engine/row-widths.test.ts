import assert from "node:assert/strict";
import { test } from "vitest";
import { createRowWidths } from "./row-widths.ts";

test("remembers the widest of the recent results with the same columns", () => {
  const widths = createRowWidths();
  assert.equal(widths.of("a"), undefined);
  widths.note("a", 10, 1000);
  widths.note("b", 10, 10);
  widths.note("a", 10, 10);
  assert.deepEqual([widths.of("a"), widths.of("b")], [90, 1]);
  for (let result = 0; result < 60; result++) widths.note("a", 10, 10);
  assert.equal(widths.of("a"), 1);
});

test("remembers what is expected, whatever results have", () => {
  const widths = createRowWidths();
  widths.expect("a", 100);
  widths.note("a", 10, 10);
  assert.equal(widths.of("a"), 100);
  widths.note("a", 10, 2000);
  assert.equal(widths.of("a"), 200);
});

test("learns nothing from a result without rows, or with columns that have no name", () => {
  const widths = createRowWidths();
  widths.note("a", 0, 1000);
  widths.note(undefined, 1, 1000);
  assert.deepEqual([widths.of("a"), widths.of(undefined)], [undefined, undefined]);
});

test("remembers a bounded number of choices of columns", () => {
  const widths = createRowWidths();
  for (let choice = 0; choice < 65; choice++) widths.note(`${choice}`, 1, 1);
  assert.deepEqual([widths.of("0"), widths.of("1"), widths.of("64")], [undefined, 1, 1]);
});
