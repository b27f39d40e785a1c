import assert from "node:assert/strict";
import { afterAll, beforeAll, describe, it } from "vitest";
import { seedOf } from "../support/seed.ts";
import { type GatewayProcess, startGateway } from "./support/gateway.ts";
import { runPython } from "./support/python.ts";

/** Duration of the work; `WRITERS_SECONDS=600` takes ten minutes. */
const SECONDS = Number(process.env["WRITERS_SECONDS"] ?? 8);

const SEED = seedOf("WRITERS_SEED");

describe("eight threads of LanceDB's Python client that repeat nothing", () => {
  let gateway: GatewayProcess;
  beforeAll(async () => {
    // Upkeep works as often as it can.
    gateway = await startGateway("--upkeep-fragments", "2", "--upkeep-unindexed-rows", "10");
  });
  afterAll(() => gateway.close());

  it(`find every row exactly once beside upkeep, and no call fails (${SECONDS} s, seed ${SEED})`, async (t) => {
    const calls = await runPython("eight_threads.py", gateway.uri, String(SECONDS), String(SEED));
    await t.annotate(calls.trim());
    const metrics = await (await fetch(new URL("/metrics", gateway.uri))).text();
    const runs = /^lance_gateway_upkeep_runs_total\{[^}]*outcome="done"[^}]*\} (\d+)/m.exec(metrics)?.[1];
    assert.ok(Number(runs) > 0, `upkeep ran ${runs} times`);
  });
});
