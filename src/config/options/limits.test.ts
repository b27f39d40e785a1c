import assert from "node:assert/strict";
import { it } from "vitest";
import { UsageError } from "../option-spec.ts";
import { CALLER_LIMIT_OPTIONS } from "./limits.ts";

it("reads rates with and without a burst, and refuses what is not a rate", () => {
  const { parse } = CALLER_LIMIT_OPTIONS.rateLimits;
  assert.deepEqual(parse("principal=100"), { scope: "principal", perSecond: 100, burst: 100 });
  assert.deepEqual(parse("address=50:200"), { scope: "address", perSecond: 50, burst: 200 });
  for (const text of [
    "100",
    "tenant=1",
    "total=0",
    "total=1:0",
    "total=-1",
    "total=1.5",
    "total=",
    "toString=1",
  ]) {
    assert.throws(() => parse(text), UsageError, text);
  }
});
