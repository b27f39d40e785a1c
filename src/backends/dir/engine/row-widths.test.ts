import assert from "node:assert/strict";
import { test } from "vitest";
import { createRowWidths } from "./row-widths.ts";

test("remembers the widest of the recent results with the same columns", () => {
  const widths = createRowWidths();
  assert.equal(widths.of("a"), undefined);
  widths.begin("a")(10, 1000);
  widths.begin("b")(10, 10);
  widths.begin("a")(10, 10);
  assert.deepEqual([widths.of("a"), widths.of("b")], [90, 1]);
  for (let result = 0; result < 60; result++) widths.begin("a")(10, 10);
  assert.equal(widths.of("a"), 1);
});

test("remembers a wide result however many narrow batches the next one has", () => {
  const widths = createRowWidths();
  widths.begin("a")(10, 1000);
  const note = widths.begin("a");
  for (let batch = 0; batch < 60; batch++) note(10, 10);
  assert.equal(widths.of("a"), 90);
});

test("remembers what is expected, whatever results have", () => {
  const widths = createRowWidths();
  widths.expect("a", 100);
  widths.begin("a")(10, 10);
  assert.equal(widths.of("a"), 100);
  widths.begin("a")(10, 2000);
  assert.equal(widths.of("a"), 200);
});

test("learns nothing from a result without rows, or with columns that have no name", () => {
  const widths = createRowWidths();
  widths.begin("a")(0, 1000);
  widths.begin(undefined)(1, 1000);
  assert.deepEqual([widths.of("a"), widths.of(undefined)], [undefined, undefined]);
});

test("remembers a bounded number of choices of columns", () => {
  const widths = createRowWidths();
  for (let choice = 0; choice < 65; choice++) widths.begin(`${choice}`)(1, 1);
  assert.deepEqual([widths.of("0"), widths.of("1"), widths.of("64")], [undefined, 1, 1]);
});

test("reads a few rows once for each choice of columns, and again after a failure", async () => {
  const widths = createRowWidths();
  await assert.rejects(widths.sampled("a", () => Promise.reject(new Error("unreadable"))));
  const reads = [10, 20];
  const read = async () => reads.shift() as number;
  assert.deepEqual(await Promise.all([widths.sampled("a", read), widths.sampled("a", read)]), [10, 10]);
  assert.deepEqual([await widths.sampled("b", read), await widths.sampled("a", read)], [20, 10]);
  assert.equal(widths.of("a"), undefined);
});
