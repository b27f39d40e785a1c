import assert from "node:assert/strict";
import { afterAll, beforeAll, describe, test } from "vitest";
import { createRandom } from "../support/random.ts";
import { repeats } from "../support/repeats.ts";
import { seedOf } from "../support/seed.ts";
import { type Gateways, startGateways } from "./race/gateways.ts";
import { assertAgreement, cellsIn, raceAtRandom, raceForEach } from "./race/race.ts";
import { createGatewayRacer, type Racer } from "./race/racer.ts";

/** Number of names in the race; `RACE_NAMES=200` is the long run. */
const NAMES = repeats("RACE_NAMES", 24);

const SEED = seedOf("RACE_SEED");

const GATEWAYS = 3;

/** Number of workers of the last gateway; each of its workers may get calls of several racers. */
const WORKERS = repeats("RACE_WORKERS", 2);

describe("several gateways on one root, one of them with workers", () => {
  let gateways: Gateways;
  let racers: readonly Racer[];
  beforeAll(async () => {
    gateways = await startGateways([...Array<number>(GATEWAYS - 1).fill(1), WORKERS]);
    racers = gateways.clients.map(({ client }, i) => createGatewayRacer(`connection ${i + 1}`, client));
    await gateways.clients[0]?.client.createNamespace({ id: ["race"] });
  });
  afterAll(() => gateways.close());

  for (const [where, parent] of [
    ["a namespace", ["race"]],
    ["the root", []],
  ] as const) {
    test(`every name of ${where} has one winner each time (${NAMES} names)`, async () => {
      assert.deepEqual(await raceForEach(racers, cellsIn([parent], NAMES)), []);
    });

    test(`calls on the same names of ${where} have an order (${NAMES} names, seed ${SEED})`, async () => {
      const cells = cellsIn([parent], NAMES / 2);
      await raceAtRandom(racers, cells, 8, createRandom(SEED));
      await assertAgreement(racers, cells);
    });
  }
});
