import { pino } from "pino";
import { createPolarisBackend } from "../../../src/backends/catalogs/iceberg/index.ts";
import { createCaller } from "../../support/caller.ts";
import { startIcebergServer } from "../../support/catalogs/iceberg-server.ts";
import { type CatalogFixture, catalogSuite } from "./suite.ts";

async function open(): Promise<CatalogFixture> {
  const server = await startIcebergServer("polaris");
  const { url: uri, warehouse } = server;
  const backend = await createPolarisBackend({ uri, warehouse, log: pino({ level: "silent" }) });
  return {
    client: createCaller({ backend, limits: { maxUploadBytes: 2 ** 26 } }),
    parent: [],
    async createForeignTable(namespace, name) {
      server.addTable(namespace, name, "delta");
    },
    async close() {
      await backend.close();
      await server.close();
    },
  };
}

catalogSuite("a simulation of Polaris", {
  open,
  capabilities: {
    nests: true,
    keepsNamespaceProperties: true,
    replaces: false,
    renames: false,
    drops: false,
    listsOtherFormats: true,
  },
});
