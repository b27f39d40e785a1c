import assert from "node:assert/strict";
import { test } from "vitest";
import { firstRepeated } from "./repeated.ts";

test("the first text that an earlier one equals is found", () => {
  assert.equal(firstRepeated([]), undefined);
  assert.equal(firstRepeated(["a", "b", "A", ""]), undefined);
  assert.equal(firstRepeated(["a", "b", "c", "b", "a"]), "b");
  assert.equal(firstRepeated(["", ""]), "");
});
