import assert from "node:assert/strict";
import { join } from "node:path";
import { afterAll, beforeAll, describe, test } from "vitest";
import type { ProtocolClient } from "../support/client.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { createGrpcClient } from "../support/grpc-client.ts";
import { type Program, startProgram, troublesIn } from "../support/program.ts";
import { createRandom } from "../support/random.ts";
import { repeats } from "../support/repeats.ts";
import { seedOf } from "../support/seed.ts";
import { assertAgreement, cellsIn, raceAtRandom, raceForEach } from "./race/race.ts";
import { createGatewayRacer, type Racer } from "./race/racer.ts";

/** Number of names in the race; `RACE_NAMES=200` is the long run. */
const NAMES = repeats("RACE_NAMES", 24);

const SEED = seedOf("RACE_SEED");

const GATEWAYS = 3;

/** Number of workers of the last gateway; each of its workers may get calls of several racers. */
const WORKERS = repeats("RACE_WORKERS", 2);

describe("several gateways on one root, one of them with workers", () => {
  let directory: { path: string; remove(): Promise<void> };
  const clients: ProtocolClient[] = [];
  const racers: Racer[] = [];
  const programs: Program[] = [];
  beforeAll(async () => {
    directory = await temporaryDirectory();
    const options = ["--root", join(directory.path, "root"), "--port", "0", "--log-level", "error"];
    const workers = Array.from({ length: GATEWAYS }, (_, index) => (index < GATEWAYS - 1 ? 1 : WORKERS));
    programs.push(...workers.map((count) => startProgram("serve", ...options, "--workers", String(count))));
    const listening = await Promise.all(programs.map((program) => program.listening()));
    // A connection stays with its worker.
    const ports = listening.flatMap((port, index) => Array.from({ length: workers[index] ?? 1 }, () => port));
    for (const [i, port] of ports.entries()) {
      const client = createGrpcClient(port);
      clients.push(client);
      racers.push(createGatewayRacer(`connection ${i + 1}`, client.client));
    }
    await clients[0]?.client.createNamespace({ id: ["race"] });
  });
  afterAll(async () => {
    for (const { close } of clients) close();
    for (const { child } of programs) child.kill("SIGTERM");
    const endings = await Promise.all(programs.map(({ ended }) => ended));
    await directory.remove();
    for (const { stderr } of endings)
      assert.deepEqual(troublesIn(stderr), [], "a gateway has logged an error");
  });

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
