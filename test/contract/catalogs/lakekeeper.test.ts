import { pino } from "pino";
import { createLakekeeperBackend } from "../../../src/backends/catalogs/iceberg/index.ts";
import { createCaller } from "../../support/caller.ts";
import { startIcebergServer } from "../../support/catalogs/iceberg-server.ts";
import type { OpenCatalog } from "../../support/catalogs/rows-here.ts";
import { suitesWithRows } from "./rows-here.ts";
import { type CatalogCapabilities, type CatalogFixture, catalogSuite } from "./suite.ts";

const open: OpenCatalog<CatalogFixture> = async (tableRoot, serve = (catalog) => catalog) => {
  const server = await startIcebergServer("lakekeeper");
  const { url: uri, warehouse } = server;
  const backend = serve(
    await createLakekeeperBackend({ uri, warehouse, tableRoot, log: pino({ level: "silent" }) }),
  );
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
};

const capabilities: CatalogCapabilities = {
  nests: true,
  keepsNamespaceProperties: true,
  replaces: false,
  renames: true,
  drops: true,
  listsOtherFormats: false,
};

catalogSuite("a simulation of Lakekeeper", { open, capabilities });
suitesWithRows("a simulation of Lakekeeper", { open, capabilities });
