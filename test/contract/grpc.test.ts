import { pino } from "pino";
import { createGrpcBackend } from "../../src/backends/grpc/index.ts";
import { createCaller } from "../support/caller.ts";
import { startDirectoryServer } from "../support/server.ts";
import { contractSuite } from "./suite.ts";

const limits = { maxUploadBytes: 2 ** 26 };

contractSuite("gRPC to a gateway over a directory", {
  async open() {
    const server = await startDirectoryServer();
    const backend = await createGrpcBackend({
      addresses: [`127.0.0.1:${server.port}`],
      log: pino({ level: "silent" }),
    });
    return {
      client: createCaller({ backend, limits }),
      async close() {
        await backend.close();
        await server.close();
      },
    };
  },
});
