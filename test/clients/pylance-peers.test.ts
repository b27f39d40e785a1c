import { describe, it } from "vitest";
import { startGateway } from "./support/gateway.ts";
import { runPython } from "./support/python.ts";

describe("pylance's own directory catalog beside the gateway", () => {
  it("pylance commits versions through the gateway, several writers at once", async () => {
    const gateway = await startGateway("--managed-versioning");
    try {
      await runPython("managed_versions.py", gateway.uri, gateway.base);
    } finally {
      await gateway.close();
    }
  });

  it("sees tables that the gateway renamed, and transactions that it altered", async () => {
    const gateway = await startGateway();
    try {
      await runPython("renamed_tables.py", gateway.uri, gateway.base);
    } finally {
      await gateway.close();
    }
  });
});
