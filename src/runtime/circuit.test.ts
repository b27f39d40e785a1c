import assert from "node:assert/strict";
import { afterEach, beforeEach, test, vi } from "vitest";
import { Circuit } from "./circuit.ts";

beforeEach(() => vi.useFakeTimers({ toFake: ["performance"] }));
afterEach(() => vi.useRealTimers());

/** Lengths of the pauses of a circuit whose probes all fail, in milliseconds. */
function pausesOf(circuit: Circuit): number[] {
  circuit.enter()?.tell("failing");
  const pauses: number[] = [];
  while (pauses.length < 4) {
    pauses.push(circuit.closedForMs);
    assert.equal(circuit.enter(), undefined);
    vi.advanceTimersByTime(circuit.closedForMs);
    const probe = circuit.enter();
    assert.equal(probe?.isProbe, true);
    probe?.tell("failing");
  }
  return pauses;
}

test("the circuit stays open for the same time after each failed probe by default", () => {
  assert.deepEqual(pausesOf(new Circuit({ failures: 1, openMs: 10 })), [10, 10, 10, 10]);
});

test("the circuit stays open for twice the time after each failed probe, up to the longest time", () => {
  assert.deepEqual(pausesOf(new Circuit({ failures: 1, openMs: 10, longestOpenMs: 30 })), [10, 20, 30, 30]);
});
