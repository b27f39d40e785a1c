import assert from "node:assert/strict";
import { afterAll, beforeAll, describe, onTestFinished, test, vi } from "vitest";
import { FAULTS, WIRES, type Wire } from "./upstreams/faults.ts";
import { type Case, casesOf, expectedOf, type FaultyWorld, startFaultyWorld } from "./upstreams/measure.ts";
import { hedgedSeries, runSeries, SERIES, type Series } from "./upstreams/series.ts";

/** Time limit that fails the test of a call without an answer. */
const timeout = 60_000;

async function checkSeries(series: Series, wire: Wire): Promise<void> {
  const { answered, calls, seconds } = await runSeries(series, wire);
  assert.equal(answered, series.answered);
  const [fewest, atOnce] = series.calls;
  const most = atOnce + seconds * (series.callsPerSecond ?? 0);
  const [first = -1] = calls;
  assert.ok(first >= fewest && first <= most, `it got ${first} calls`);
}

describe("upstreams with faults", { concurrent: true }, () => {
  let world: FaultyWorld;
  beforeAll(async () => {
    world = await startFaultyWorld();
  });
  afterAll(() => world.close());

  for (const fault of FAULTS) {
    for (const wire of WIRES) {
      const cases = casesOf(fault, wire);
      if (cases.length === 0) continue;
      test(`${wire}: ${fault.name}`, { timeout }, async () => {
        const check = async (one: Case) => {
          const { saw, calls } = await world.measure(one);
          assert.equal(`${saw}, ${calls}`, expectedOf(one), `${one.operation} by ${one.client}`);
        };
        // A slow call must not disturb its neighbours on one connection.
        const groups = fault.slow ? Object.values(Object.groupBy(cases, operationOf)) : [cases];
        await Promise.all(
          groups.map(async (group) => {
            for (const one of group) await check(one);
          }),
        );
      });
    }
  }
});

describe("series of reads of an upstream with faults", { concurrent: true }, () => {
  for (const series of SERIES) {
    for (const wire of WIRES) {
      test(`${wire}: ${series.name}`, { timeout }, () => checkSeries(series, wire));
    }
  }
});

/** Not concurrent, because its clock is the one of the whole process. */
describe("series of hedged reads", () => {
  for (const wire of WIRES) {
    // Time passes only while the slow address has a call, so that no read of the other one is late.
    const series = hedgedSeries(50, () => vi.advanceTimersByTime(50));
    test(`${wire}: ${series.name}`, { timeout }, async () => {
      vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
      onTestFinished(() => void vi.useRealTimers());
      await checkSeries(series, wire);
    });
  }
});

const operationOf = ({ operation }: Case) => operation;
