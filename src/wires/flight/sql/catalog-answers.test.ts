import assert from "node:assert/strict";
import { test } from "vitest";
import { fitsPattern } from "./catalog-answers.ts";

test.each([
  ["%", "people", true],
  ["", "", true],
  ["", "a", false],
  ["peo%", "people", true],
  ["%ple", "people", true],
  ["p%o%e", "people", true],
  ["p_ople", "people", true],
  ["people_", "people", false],
  ["p\\_", "p_", true],
  ["p\\_", "pa", false],
  ["a\\%", "a%", true],
  ["a\\", "a\\", true],
  ["_", "😀", true],
  [".*", "people", false],
])("the pattern %j fits %j: %j", (pattern, name, fits) => {
  assert.equal(fitsPattern(pattern)(name), fits);
});

test("fits every name without a pattern, and answers a hostile pattern at once", () => {
  assert.equal(fitsPattern(undefined)("any"), true);
  const began = performance.now();
  assert.equal(fitsPattern(`${"%a".repeat(500)}b`)("a".repeat(1_000)), false);
  assert.ok(performance.now() - began < 1_000);
});
