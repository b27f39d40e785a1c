import assert from "node:assert/strict";
import fc from "fast-check";
import { test } from "vitest";
import { createRangeCheck } from "./delete-versions.ts";

test("a version is in a range from its start to before its end, or without end if that is negative", () => {
  const range = fc.record({ start: fc.bigInt(0n, 30n), end: fc.bigInt(-1n, 30n) });
  fc.assert(
    fc.property(fc.array(range), fc.bigInt(0n, 40n), (ranges, version) => {
      const expected = ranges.some(({ start, end }) => version >= start && (end < 0n || version < end));
      assert.equal(createRangeCheck(ranges)(version), expected);
    }),
  );
});
