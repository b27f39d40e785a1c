import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { isLanceError, type LanceError } from "../../../../namespace/errors.ts";
import { byteRange } from "./blobs.ts";

describe("the range of a request", () => {
  const cases: readonly [header: string | undefined, size: number, range: [number, number] | undefined][] = [
    ["bytes=0-0", 10, [0, 1]],
    ["bytes=3-5", 10, [3, 6]],
    ["bytes=3-", 10, [3, 10]],
    ["bytes=3-500", 10, [3, 10]],
    ["bytes=-4", 10, [6, 10]],
    ["bytes=-40", 10, [0, 10]],
    [undefined, 10, undefined],
    ["bytes=-", 10, undefined],
    ["bytes=5-3", 10, undefined],
    ["bytes=0-1,3-4", 10, undefined],
    ["rows=0-1", 10, undefined],
    ["bytes=0x1-3", 10, undefined],
  ];
  for (const [header, size, range] of cases) {
    it(`is ${range ?? "everything"} for ${header} of ${size} bytes`, () => {
      const { start, end } = byteRange(header, size) ?? {};
      assert.deepEqual(start === undefined ? undefined : [start, end], range);
    });
  }

  for (const [header, size] of [
    ["bytes=10-", 10],
    ["bytes=0-0", 0],
    ["bytes=-0", 10],
    ["bytes=-5", 0],
  ] as const) {
    it(`cannot be ${header} of ${size} bytes, and the error says how many there are`, () => {
      assert.throws(
        () => byteRange(header, size),
        (error: LanceError) =>
          isLanceError(error, "RangeNotSatisfiable") && error.headers["content-range"] === `bytes */${size}`,
      );
    });
  }
});
