import { afterAll, beforeAll, describe, it } from "vitest";
import { type GatewayProcess, startGateway } from "./support/gateway.ts";
import { runPython } from "./support/python.ts";

describe("long uploads", () => {
  let gateway: GatewayProcess;
  beforeAll(async () => {
    // Joined fragments would be versions that no writer has made.
    gateway = await startGateway("--upload-part-size", "64KiB", "--table-upkeep", "off");
  });
  afterAll(() => gateway.close());

  it("pylance writes beside them, and finds every row and every version in order", async () => {
    await runPython("staged_rows.py", gateway.uri, gateway.base);
  });
});
