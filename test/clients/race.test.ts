import assert from "node:assert/strict";
import { afterAll, beforeAll, describe, it } from "vitest";
import { assertAgreement, cellsIn, raceAtRandom, raceForEach } from "../faults/race/race.ts";
import { createGatewayRacer, type Racer } from "../faults/race/racer.ts";
import type { ProtocolClient } from "../support/client.ts";
import { createGrpcClient } from "../support/grpc-client.ts";
import { type Program, startProgram } from "../support/program.ts";
import { createRandom } from "../support/random.ts";
import { seedOf } from "../support/seed.ts";
import { type GatewayProcess, startGateway } from "./support/gateway.ts";
import { startPylanceRacer } from "./support/pylance-racer.ts";

const NAMES = Number(process.env["RACE_NAMES"] ?? 40);

const SEED = seedOf("RACE_SEED");

describe("three gateways and pylance's DirectoryNamespace on one root", () => {
  let first: GatewayProcess;
  let pylance: ReturnType<typeof startPylanceRacer>;
  const others: Program[] = [];
  const clients: ProtocolClient[] = [];
  const racers: Racer[] = [];
  beforeAll(async () => {
    first = await startGateway();
    others.push(
      ...Array.from({ length: 2 }, () => startProgram("serve", "--root", first.root, "--port", "0")),
    );
    const ports = await Promise.all(others.map((program) => program.listening()));
    for (const port of [Number(new URL(first.uri).port), ...ports]) {
      const client = createGrpcClient(port);
      clients.push(client);
      racers.push(createGatewayRacer(`gateway ${clients.length}`, client.client));
    }
    await clients[0]?.client.createNamespace({ id: ["race"] });
    pylance = startPylanceRacer(first.base);
    racers.push(pylance.racer);
  });
  afterAll(async () => {
    for (const { close } of clients) close();
    for (const { child } of others) child.kill("SIGKILL");
    await pylance.end();
    await first.close();
  });

  it(`gives every name one winner each time (${NAMES} names)`, async () => {
    assert.deepEqual(await raceForEach(racers, cellsIn([["race"]], NAMES)), []);
  });

  it(`makes calls whose histories have an order (${NAMES} names, seed ${SEED})`, async () => {
    const cells = cellsIn([["race"]], NAMES / 2);
    await raceAtRandom(racers, cells, 6, createRandom(SEED));
    await assertAgreement(racers, cells);
  });
});
