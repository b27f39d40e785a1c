import { CreateTableCommand } from "@aws-sdk/client-glue";
import { pino } from "pino";
import { createGlueBackend } from "../../../src/backends/catalogs/glue/index.ts";
import { type CatalogFixture, catalogSuite } from "../../contract/catalogs/suite.ts";
import { createCaller } from "../../support/caller.ts";
import { startGlueAccount } from "../support/glue.ts";

const log = pino({ level: "silent" });

async function open(): Promise<CatalogFixture> {
  const account = await startGlueAccount();
  const { endpoint, region, credentials } = account;
  const backend = await createGlueBackend({ endpoint, region, credentials, resilience: { log } });
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
}

catalogSuite("AWS Glue (moto)", {
  open,
  capabilities: {
    nests: false,
    keepsNamespaceProperties: true,
    replaces: true,
    renames: false,
    drops: false,
    listsOtherFormats: false,
  },
});
