import assert from "node:assert/strict";
import { afterAll, beforeAll, describe, it } from "vitest";
import { seedOf } from "../support/seed.ts";
import { type GatewayProcess, startGateway } from "./support/gateway.ts";
import { runPython } from "./support/python.ts";

const SESSIONS = 100;
/** Cases of a session. */
const CASES = 50;

describe("random updates, merges, deletions and reads, beside the same work by pylance", () => {
  let gateway: GatewayProcess;
  beforeAll(async () => {
    gateway = await startGateway("--table-upkeep=off");
  });
  afterAll(() => gateway.close());

  it("have equal outcomes and leave equal rows, whatever is blank, absent, doubled or read while it changes", async (t) => {
    const work = [seedOf("ROWS_SEED"), SESSIONS, CASES].map(String);
    const { differences, ...figures } = JSON.parse(await runPython("random_rows.py", gateway.uri, ...work));
    await t.annotate(JSON.stringify(figures));
    assert.deepEqual(differences, []);
    assert.equal(figures.cases, SESSIONS * CASES);
    // Most cases change or find rows, and each kind of refusal is among the others.
    assert.ok(
      figures.done > figures.cases / 3 && figures.refused > 500 && figures.unsupported > 100,
      JSON.stringify(figures),
    );
  });
});
