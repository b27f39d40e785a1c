import { pino } from "pino";
import { createUnityBackend } from "../../../src/backends/catalogs/unity/index.ts";
import { createCaller } from "../../support/caller.ts";
import { startUnityServer } from "../../support/catalogs/unity-server.ts";
import { type CatalogFixture, catalogSuite } from "./suite.ts";

async function open(): Promise<CatalogFixture> {
  const server = await startUnityServer();
  const backend = await createUnityBackend({ uri: server.url, log: pino({ level: "silent" }) });
  return {
    client: createCaller({ backend, limits: { maxUploadBytes: 2 ** 26 } }),
    parent: [server.catalog],
    async createForeignTable(namespace, name) {
      server.addTable(namespace, name);
    },
    async close() {
      await backend.close();
      await server.close();
    },
  };
}

catalogSuite("a simulation of Unity Catalog", {
  open,
  capabilities: {
    nests: false,
    keepsNamespaceProperties: true,
    replaces: false,
    renames: false,
    drops: false,
    listsOtherFormats: false,
  },
});
