import { pino } from "pino";
import { createPolarisBackend } from "../../../src/backends/catalogs/iceberg/index.ts";
import { createCaller } from "../../support/caller.ts";
import { startIcebergServer } from "../../support/catalogs/iceberg-server.ts";
import type { OpenCatalog } from "../../support/catalogs/rows-here.ts";
import { suitesWithRows } from "./rows-here.ts";
import { type CatalogCapabilities, type CatalogFixture, catalogSuite } from "./suite.ts";

const open: OpenCatalog<CatalogFixture> = async (tableRoot, serve = (catalog) => catalog) => {
  const server = await startIcebergServer("polaris");
  const { url: uri, warehouse } = server;
  const backend = serve(
    await createPolarisBackend({ uri, warehouse, tableRoot, log: pino({ level: "silent" }) }),
  );
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
};

const capabilities: CatalogCapabilities = {
  nests: true,
  keepsNamespaceProperties: true,
  replaces: false,
  renames: false,
  drops: false,
  listsOtherFormats: true,
};

catalogSuite("a simulation of Polaris", { open, capabilities });
suitesWithRows("a simulation of Polaris", { open, capabilities });
