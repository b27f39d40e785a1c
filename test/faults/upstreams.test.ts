import assert from "node:assert/strict";
import { afterAll, beforeAll, describe, test } from "vitest";
import { FAULTS, WIRES } from "./upstreams/faults.ts";
import { type Case, casesOf, expectedOf, type FaultyWorld, startFaultyWorld } from "./upstreams/measure.ts";
import { runSeries, SERIES } from "./upstreams/series.ts";

/** Time limit that fails the test of a call without an answer. */
const timeout = 60_000;

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
      test(`${wire}: ${series.name}`, { timeout }, async () => {
        const { answered, calls, seconds } = await runSeries(series, wire);
        assert.equal(answered, series.answered);
        const [fewest, atOnce] = series.calls;
        const most = atOnce + seconds * (series.callsPerSecond ?? 0);
        const [first = -1] = calls;
        assert.ok(first >= fewest && first <= most, `it got ${first} calls`);
      });
    }
  }
});

const operationOf = ({ operation }: Case) => operation;
