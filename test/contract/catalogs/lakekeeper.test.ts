import { pino } from "pino";
import { createLakekeeperBackend } from "../../../src/backends/catalogs/iceberg/index.ts";
import { createCaller } from "../../support/caller.ts";
import { startIcebergServer } from "../../support/catalogs/iceberg-server.ts";
import { type CatalogFixture, catalogSuite } from "./suite.ts";

async function open(): Promise<CatalogFixture> {
  const server = await startIcebergServer("lakekeeper");
  const { url: uri, warehouse } = server;
  const backend = await createLakekeeperBackend({ uri, warehouse, log: pino({ level: "silent" }) });
  return {
    client: createCaller({ backend, limits: { maxUploadBytes: 2 ** 26 } }),
    parent: [],
    async createForeignTable(namespace, name) {
      server.addTable(namespace, name, "delta");
    },
    purged: () => server.purged,
    async close() {
      await backend.close();
      await server.close();
    },
  };
}

catalogSuite("a simulation of Lakekeeper", {
  open,
  capabilities: {
    nests: true,
    keepsNamespaceProperties: true,
    replaces: false,
    renames: true,
    drops: true,
    listsOtherFormats: false,
  },
});
