import { afterEach, beforeEach, describe, it } from "vitest";
import { type GatewayProcess, startGateway } from "./support/gateway.ts";
import { runPython } from "./support/python.ts";

describe("LanceDB's Python clients, beside the same code on a local directory", () => {
  // Both begin without tables.
  let gateway: GatewayProcess;
  beforeEach(async () => {
    gateway = await startGateway();
  });
  afterEach(() => gateway.close());

  it("answer alike about logs of tables, and load data", async () => {
    await runPython("beside_log.py", gateway.uri);
  });

  it("answer alike to searches with every option", async () => {
    await runPython("beside_search.py", gateway.uri);
  });

  it("answer alike to writes, and refuse in the same words at the first try", async () => {
    await runPython("beside_writes.py", gateway.uri);
  });
});
