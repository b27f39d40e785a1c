import assert from "node:assert/strict";
import { afterAll, beforeAll, describe, it } from "vitest";
import { seedOf } from "../support/seed.ts";
import { type GatewayProcess, startGateway } from "./support/gateway.ts";
import { runPython } from "./support/python.ts";

const SESSIONS = 30;
/** Comparisons of a session. */
const STEPS = 50;

describe("random work of LanceDB's client, beside the same work on a local directory", () => {
  let gateway: GatewayProcess;
  beforeAll(async () => {
    // Upkeep makes versions of its own, at times that depend on the machine.
    gateway = await startGateway("--table-upkeep=off");
  });
  afterAll(() => gateway.close());

  it("has equal outcomes, whatever the types, the conditions and the order", async () => {
    const seed = seedOf("BESIDE_SEED");
    const output = await runPython(
      "random_beside.py",
      gateway.uri,
      String(seed),
      String(SESSIONS),
      String(STEPS),
    );
    const { comparisons, differences } = JSON.parse(output);
    assert.deepEqual(differences, []);
    assert.equal(comparisons, SESSIONS * STEPS);
  });
});
