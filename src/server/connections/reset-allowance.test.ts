import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { allocateCells, openCells } from "../../runtime/threads/keyed-cells.ts";
import { createResetAllowances, RESETS_SHAPE } from "./reset-allowance.ts";

describe("createResetAllowances", () => {
  it("reduces the allowance of an address with a broken connection, for a minute, and of no other", () => {
    let now = 1;
    const allowances = createResetAllowances(undefined, () => now);
    const full = allowances.of("10.0.0.1");
    allowances.noteBroken("10.0.0.1");
    now = 60_000;
    const { streamResetBurst, streamResetRate } = allowances.of("10.0.0.1");
    assert.ok(streamResetBurst <= full.streamResetBurst / 10);
    assert.ok(streamResetRate < full.streamResetRate);
    assert.deepEqual(allowances.of("10.0.0.2"), full);
    now = 60_001;
    assert.deepEqual(allowances.of("10.0.0.1"), full);
  });

  it("reduces the allowance of a whole network of IPv6, whose addresses a client can choose", () => {
    const allowances = createResetAllowances();
    const full = allowances.of("2001:db8:0:1::1");
    allowances.noteBroken("2001:db8:0:1::1");
    assert.notDeepEqual(allowances.of("2001:db8::1:2:3:4:5"), full);
    assert.deepEqual(allowances.of("2001:db8:0:2::1"), full);
  });

  it("remembers a bounded number of addresses, those of the last broken connections", () => {
    let now = 0;
    const cells = openCells({ ...RESETS_SHAPE, keys: 16 });
    const allowances = createResetAllowances(cells, () => ++now);
    const full = allowances.of("new");
    for (let i = 0; i < 16; i++) allowances.noteBroken(`10.0.0.${i}`);
    allowances.noteBroken("10.0.0.0");
    allowances.noteBroken("another");
    assert.notDeepEqual(allowances.of("10.0.0.0"), full);
    assert.deepEqual(allowances.of("10.0.0.1"), full);
  });

  it("forgets no address because others ask", () => {
    const allowances = createResetAllowances(openCells({ ...RESETS_SHAPE, keys: 16 }));
    const full = allowances.of("new");
    for (let i = 0; i < 16; i++) allowances.noteBroken(`10.0.0.${i}`);
    for (let i = 16; i < 64; i++) assert.deepEqual(allowances.of(`10.0.0.${i}`), full);
    for (let i = 0; i < 16; i++) assert.notDeepEqual(allowances.of(`10.0.0.${i}`), full);
  });

  it("holds for all workers of a process", () => {
    const memory = allocateCells(RESETS_SHAPE, 2);
    const [one, two] = [0, 1].map((worker) =>
      createResetAllowances(openCells(RESETS_SHAPE, { worker, workers: 2 }, memory)),
    );
    one?.noteBroken("10.0.0.1");
    assert.deepEqual(two?.of("10.0.0.1"), one?.of("10.0.0.1"));
    assert.notDeepEqual(two?.of("10.0.0.1"), two?.of("10.0.0.2"));
  });
});
