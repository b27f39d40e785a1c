import { pino } from "pino";
import { createDirectoryBackend } from "../../../src/backends/dir/index.ts";
import { openStore } from "../../../src/backends/dir/stores/open-store.ts";
import { contractSuite } from "../../contract/suite.ts";
import { createCaller } from "../../support/caller.ts";
import { BUCKET, startS3 } from "../support/store-servers.ts";

const limits = { maxUploadBytes: 2 ** 26 };

contractSuite("a bucket of S3", {
  async open() {
    const server = await startS3();
    const { options: storageOptions } = server;
    const root = `s3://${BUCKET}/catalogs/contract`;
    const backend = await createDirectoryBackend({ root, storageOptions, log: pino({ level: "silent" }) });
    return {
      client: createCaller({ backend, limits }),
      store: (await openStore(root, storageOptions)).store,
      async close() {
        await backend.close();
        await server.close();
      },
    };
  },
});
