import { contractSuite } from "../contract/suite.ts";
import { CACHED_UPSTREAMS } from "../support/cached-upstreams.ts";
import { createCaller } from "../support/caller.ts";
import { startDirectoryServer } from "../support/server.ts";

const limits = { maxUploadBytes: 2 ** 26 };

for (const [kind, open] of Object.entries(CACHED_UPSTREAMS)) {
  contractSuite(`a ${kind} upstream whose answers are kept for an hour`, {
    async open() {
      const directory = await startDirectoryServer();
      const backend = await open(directory.port);
      return {
        client: createCaller({ backend, limits }),
        async close() {
          await backend.close();
          await directory.close();
        },
      };
    },
  });
}
