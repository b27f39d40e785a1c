import assert from "node:assert/strict";
import { test } from "vitest";
import { createTimeLimits } from "./time-limits.ts";

const MIB = 2 ** 20;

test("small requests have short limits, which grow with their bytes and with each attempt", () => {
  const { small, write, conditionalWrite } = createTimeLimits(30_000);
  assert.equal(small, 10_000);
  assert.deepEqual([write(0), write(2 * MIB)], [10_000, 18_389]);
  assert.deepEqual(
    [0, 1, 2, 3, 4].map((attempts) => conditionalWrite(0, attempts)),
    [2_000, 4_000, 8_000, 16_000, 30_000],
  );
  assert.equal(conditionalWrite(MIB, 0), 6_195);
});

test("no limit exceeds the one that was set", () => {
  const { small, write, conditionalWrite } = createTimeLimits(200);
  assert.deepEqual([small, write(MIB), conditionalWrite(MIB, 3)], [200, 200, 200]);
});
