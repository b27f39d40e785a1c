import { afterAll, beforeAll, describe, it } from "vitest";
import { type GatewayProcess, startGateway } from "./support/gateway.ts";
import { runPython } from "./support/python.ts";

describe("Arrow types", () => {
  let gateway: GatewayProcess;
  beforeAll(async () => {
    gateway = await startGateway();
  });
  afterAll(() => gateway.close());

  it("are read by pylance and from a query as they were written, or refused by column", async () => {
    await runPython("arrow_types.py", gateway.uri);
  });
});
