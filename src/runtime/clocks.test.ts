import assert from "node:assert/strict";
import { test } from "vitest";
import { backoffMs } from "./clocks.ts";

test("a pause doubles with each repetition, up to the longest one", () => {
  assert.deepEqual(
    [0, 1, 2, 3, 4, 5_000].map((times) => backoffMs(times, 10, 50)),
    [10, 20, 40, 50, 50, 50],
  );
  assert.equal(backoffMs(3, 10), 80);
});
