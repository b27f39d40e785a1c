import { pino } from "pino";
import { createGrpcBackend } from "../../src/backends/grpc/index.ts";
import { createRestBackend } from "../../src/backends/rest/index.ts";
import type { Backend } from "../../src/namespace/port.ts";
import { contractSuite } from "../contract/suite.ts";
import { createCaller } from "../support/caller.ts";
import { startDirectoryServer } from "../support/server.ts";

const limits = { maxUploadBytes: 2 ** 26, maxBufferedBytes: 2 ** 28 };
const log = pino({ level: "silent" });
const cache = { ttlMs: 3_600_000 };

const UPSTREAMS: Readonly<Record<string, (port: number) => Promise<Backend>>> = {
  REST: (port) => createRestBackend({ uri: `http://127.0.0.1:${port}`, cache, log }),
  gRPC: (port) => createGrpcBackend({ addresses: [`127.0.0.1:${port}`], cache, log }),
};

for (const [kind, open] of Object.entries(UPSTREAMS)) {
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
