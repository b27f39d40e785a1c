import assert from "node:assert/strict";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createWriteGate, type WriteGate } from "../../concurrency/locks.ts";
import { createHeldChanges } from "./held-changes.ts";

const [JOB, TABLE] = ["job", "t"];
const TIMES = { drainMs: 1_000, holdMs: 2_000 };

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Changes a table at once, or after the gate opens. */
function change(gate: WriteGate) {
  const state = { done: false };
  void gate.pass(TABLE, async () => {
    state.done = true;
  });
  return state;
}

/** Lets a compaction be overtaken once, and begin again. */
async function openHeld() {
  const gate = createWriteGate();
  const held = createHeldChanges(gate, TIMES);
  await held.begin(JOB, TABLE);
  held.overtake(JOB);
  await held.begin(JOB, TABLE);
  return { gate, held };
}

/** Lets promises resolve while no time passes. */
const resolved = () => vi.advanceTimersByTimeAsync(0);

test("changes pass beside the first attempt of a compaction to commit", async () => {
  const gate = createWriteGate();
  await createHeldChanges(gate, TIMES).begin(JOB, TABLE);
  const passing = change(gate);
  await resolved();
  assert.ok(passing.done);
});

test("changes wait for an attempt after one that was overtaken, and no longer than their patience", async () => {
  const { gate } = await openHeld();
  const waiting = change(gate);
  await vi.advanceTimersByTimeAsync(TIMES.holdMs - 1);
  assert.equal(waiting.done, false);
  await vi.advanceTimersByTimeAsync(1);
  assert.ok(waiting.done);
  expect(vi.getTimerCount()).toBe(0);
});

test("an attempt waits for the changes that run, and no longer than its patience", async () => {
  const gate = createWriteGate();
  const held = createHeldChanges(gate, TIMES);
  await held.begin(JOB, TABLE);
  void gate.pass(TABLE, () => new Promise(() => {}));
  const begun = vi.fn();
  void held.begin(JOB, TABLE).then(begun);
  await vi.advanceTimersByTimeAsync(TIMES.drainMs - 1);
  expect(begun).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  expect(begun).toHaveBeenCalled();
});

test.each(["overtake", "end"] as const)(
  "changes go on at once after a compaction calls %s, and need no timer",
  async (ending) => {
    const { gate, held } = await openHeld();
    const waiting = change(gate);
    held[ending](JOB);
    await resolved();
    assert.ok(waiting.done);
    expect(vi.getTimerCount()).toBe(0);
    // The next attempt is the first of its kind.
    await held.begin(JOB, TABLE);
    const passing = change(gate);
    await resolved();
    assert.ok(passing.done);
  },
);

test("a call that is repeated at the same time leaves no gate closed", async () => {
  const gate = createWriteGate();
  const held = createHeldChanges(gate, TIMES);
  await held.begin(JOB, TABLE);
  const running = Promise.withResolvers<void>();
  void gate.pass(TABLE, () => running.promise);
  const calls = [held.begin(JOB, TABLE), held.begin(JOB, TABLE)];
  running.resolve();
  await Promise.all(calls);
  const waiting = change(gate);
  await vi.advanceTimersByTimeAsync(TIMES.holdMs);
  assert.ok(waiting.done);
  const later = change(gate);
  await vi.advanceTimersByTimeAsync(TIMES.holdMs);
  assert.ok(later.done);
});

test("a job that ends while the gate closes leaves it open, also if another attempt begins meanwhile", async () => {
  const gate = createWriteGate();
  const held = createHeldChanges(gate, TIMES);
  await held.begin(JOB, TABLE);
  // Upkeep in the gateway holds the gate for as long as it works.
  const openAgain = await gate.close(TABLE, 0);
  const begun = held.begin(JOB, TABLE);
  held.end(JOB);
  await held.begin(JOB, TABLE);
  openAgain();
  await begun;
  const passing = change(gate);
  await resolved();
  assert.ok(passing.done);
  expect(vi.getTimerCount()).toBe(0);
});

test("compactions of different tables do not wait for each other", async () => {
  const { gate, held } = await openHeld();
  await held.begin("other job", "other");
  await held.begin("other job", "other");
  held.end("other job");
  const waiting = change(gate);
  await resolved();
  assert.equal(waiting.done, false);
  held.end(JOB);
  await resolved();
  assert.ok(waiting.done);
});
