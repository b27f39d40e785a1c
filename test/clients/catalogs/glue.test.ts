import { CreateTableCommand } from "@aws-sdk/client-glue";
import { pino } from "pino";
import { createGlueBackend } from "../../../src/backends/catalogs/glue/index.ts";
import { suitesWithRows } from "../../contract/catalogs/rows-here.ts";
import {
  type CatalogCapabilities,
  type CatalogFixture,
  catalogSuite,
} from "../../contract/catalogs/suite.ts";
import { createCaller } from "../../support/caller.ts";
import type { OpenCatalog } from "../../support/catalogs/rows-here.ts";
import { startGlueAccount } from "../support/glue.ts";

const log = pino({ level: "silent" });

const open: OpenCatalog<CatalogFixture> = async (tableRoot, serve = (catalog) => catalog) => {
  const account = await startGlueAccount();
  const { endpoint, region, credentials } = account;
  const own = { endpoint, region, credentials, resilience: { log } };
  const backend = serve(await createGlueBackend({ ...own, tableRoot }));
  return {
    client: createCaller({ backend, limits: { maxUploadBytes: 2 ** 26 } }),
    parent: [],
    async createForeignTable([DatabaseName], Name) {
      const TableInput = { Name, TableType: "EXTERNAL_TABLE", Parameters: { table_type: "ICEBERG" } };
      await account.client.send(new CreateTableCommand({ DatabaseName, TableInput }));
    },
    async close() {
      await backend.close();
      await account.close();
    },
  };
};

const capabilities: CatalogCapabilities = {
  nests: false,
  keepsNamespaceProperties: true,
  replaces: true,
  renames: false,
  drops: false,
  listsOtherFormats: false,
};

catalogSuite("AWS Glue (moto)", { open, capabilities });
suitesWithRows("AWS Glue (moto)", { open, capabilities });
