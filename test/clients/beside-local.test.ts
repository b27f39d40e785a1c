import { afterAll, beforeAll, describe, it } from "vitest";
import { compareKind } from "./beside/beside.ts";
import { checkDifferences, type KindResult } from "./beside/differences.ts";
import { KINDS } from "./beside/kinds.ts";
import { type GatewayProcess, startGateway } from "./support/gateway.ts";
import { runPython } from "./support/python.ts";

describe("LanceDB's clients, beside the same code on a local directory", () => {
  let gateway: GatewayProcess;
  beforeAll(async () => {
    // Upkeep makes versions of its own, at times that depend on the machine.
    gateway = await startGateway("--table-upkeep=off");
  });
  afterAll(() => gateway.close());

  it("answer alike in Python to every kind of work, except for the differences in the list", async () => {
    const { kinds } = JSON.parse(await runPython("beside_local.py", gateway.uri)) as { kinds: KindResult[] };
    checkDifferences("Python", kinds);
  });

  it("answer alike in Node to every kind of work, except for the differences in the list", async () => {
    const results: KindResult[] = [];
    for (const [name, kind] of Object.entries(KINDS))
      results.push(await compareKind(gateway.uri, name, kind));
    checkDifferences("Node", results);
  });
});
