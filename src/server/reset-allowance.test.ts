import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { createResetAllowances } from "./reset-allowance.ts";

describe("createResetAllowances", () => {
  it("reduces the allowance of an address with a broken connection, for a minute, and of no other", () => {
    let now = 0;
    const allowances = createResetAllowances(() => now);
    const full = allowances.of("10.0.0.1");
    allowances.noteBroken("10.0.0.1");
    now = 59_999;
    const { streamResetBurst, streamResetRate } = allowances.of("10.0.0.1");
    assert.ok(streamResetBurst <= full.streamResetBurst / 10);
    assert.ok(streamResetRate < full.streamResetRate);
    assert.deepEqual(allowances.of("10.0.0.2"), full);
    now = 60_000;
    assert.deepEqual(allowances.of("10.0.0.1"), full);
  });

  it("remembers a bounded number of addresses, those of the last broken connections", () => {
    const allowances = createResetAllowances(() => 0);
    const full = allowances.of("new");
    for (let i = 0; i < 1_024; i++) allowances.noteBroken(`10.0.${i >> 8}.${i & 255}`);
    allowances.noteBroken("10.0.0.0");
    allowances.noteBroken("another");
    assert.notDeepEqual(allowances.of("10.0.0.0"), full);
    assert.deepEqual(allowances.of("10.0.0.1"), full);
  });
});
