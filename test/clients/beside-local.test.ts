import assert from "node:assert/strict";
import { afterAll, beforeAll, describe, it } from "vitest";
import { seedOf } from "../support/seed.ts";
import { compareKind } from "./beside/beside.ts";
import { checkDifferences, type KindResult } from "./beside/differences.ts";
import { KINDS } from "./beside/kinds.ts";
import { type GatewayProcess, startGateway } from "./support/gateway.ts";
import { runPython } from "./support/python.ts";

/** Starts a gateway for the tests of a group, and returns what gives its address. */
function openGateway(): () => string {
  let gateway: GatewayProcess;
  beforeAll(async () => {
    // Upkeep makes versions of its own, at times that depend on the machine.
    gateway = await startGateway("--table-upkeep=off");
  });
  afterAll(() => gateway.close());
  return () => gateway.uri;
}

describe("LanceDB's clients, beside the same code on a local directory", () => {
  const uri = openGateway();

  it("answer alike in Python to every kind of work, except for the differences in the list", async () => {
    const { kinds } = JSON.parse(await runPython("beside_local.py", uri())) as { kinds: KindResult[] };
    checkDifferences("Python", kinds);
  });

  it("answer alike in Node to every kind of work, except for the differences in the list", async () => {
    const results: KindResult[] = [];
    for (const [name, kind] of Object.entries(KINDS)) results.push(await compareKind(uri(), name, kind));
    checkDifferences("Node", results);
  });
});

const SESSIONS = 30;
/** Comparisons of a session. */
const STEPS = 50;

describe("random work of LanceDB's client, beside the same work on a local directory", () => {
  const uri = openGateway();

  it("has equal outcomes, whatever the types, the conditions and the order", async () => {
    const work = [seedOf("BESIDE_SEED"), SESSIONS, STEPS].map(String);
    const { comparisons, differences } = JSON.parse(await runPython("random_beside.py", uri(), ...work));
    assert.deepEqual(differences, []);
    assert.equal(comparisons, SESSIONS * STEPS);
  });
});
