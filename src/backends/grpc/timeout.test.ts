import assert from "node:assert/strict";
import { it } from "vitest";
import { timeoutHeader } from "./timeout.ts";

it("writes a timeout in the finest unit that has room for it, and never a shorter one", () => {
  const day = 86_400_000;
  for (const [milliseconds, header] of [
    [0, "0m"],
    [0.2, "1m"],
    [1_500, "1500m"],
    [99_999_999, "99999999m"],
    [100_000_001, "100001S"],
    [2_000_000 * day, "48000000H"],
  ] as const) {
    assert.equal(timeoutHeader(milliseconds), header);
  }
});
