import { pino } from "pino";
import { createUnityBackend } from "../../../src/backends/catalogs/unity/index.ts";
import { createCaller } from "../../support/caller.ts";
import type { OpenCatalog } from "../../support/catalogs/rows-here.ts";
import { startUnityServer } from "../../support/catalogs/unity-server.ts";
import { suitesWithRows } from "./rows-here.ts";
import { type CatalogCapabilities, type CatalogFixture, catalogSuite } from "./suite.ts";

/** With rows, the only catalog is the root. */
const open: OpenCatalog<CatalogFixture> = async (tableRoot, serve = (catalog) => catalog) => {
  const server = await startUnityServer();
  const within = tableRoot === undefined ? [] : [server.catalog];
  const log = pino({ level: "silent" });
  const backend = serve(await createUnityBackend({ uri: server.url, log, tableRoot, within }));
  return {
    client: createCaller({ backend, limits: { maxUploadBytes: 2 ** 26 } }),
    parent: within.length === 0 ? [server.catalog] : [],
    async createForeignTable(namespace, name) {
      server.addTable([...within, ...namespace], name);
    },
    async close() {
      await backend.close();
      await server.close();
    },
  };
};

const capabilities: CatalogCapabilities = {
  nests: false,
  keepsNamespaceProperties: true,
  replaces: false,
  renames: false,
  drops: false,
  listsOtherFormats: false,
};

catalogSuite("a simulation of Unity Catalog", { open, capabilities });
suitesWithRows("a simulation of Unity Catalog", { open, capabilities });
