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

  it("commits versions through a catalog in turn with two gateways that serve the rows, and at once", async () => {
    const catalog = await startGateway("--managed-versioning");
    const rows = ["--uri", catalog.uri, "--rows", "here", "--allowed-location", catalog.base];
    const gateways = await Promise.all([1, 2].map(() => startGateway(...rows)));
    try {
      await runPython("managed_upstream.py", catalog.uri, ...gateways.map(({ uri }) => uri));
    } finally {
      for (const gateway of [...gateways, catalog]) await gateway.close();
    }
  });

  it("reads tables with names of all kinds that the gateway made, and the gateway reads its tables", async () => {
    const gateway = await startGateway("--names", "unicode");
    try {
      await runPython("odd_names.py", gateway.uri, gateway.base);
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
