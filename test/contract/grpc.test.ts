import { pino } from "pino";
import { createGrpcBackend } from "../../src/backends/grpc/index.ts";
import type { NameRule } from "../../src/namespace/identifier.ts";
import { createCaller } from "../support/caller.ts";
import { startDirectoryServer } from "../support/server.ts";
import { unicodeNameTests } from "./identifiers.ts";
import { contractSuite } from "./suite.ts";
import type { Fixture } from "./world.ts";

const limits = { maxUploadBytes: 2 ** 26 };

async function open(names?: NameRule): Promise<Fixture> {
  const server = await startDirectoryServer({}, {}, names);
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
}

contractSuite("gRPC to a gateway over a directory", { open });
unicodeNameTests("gRPC to a gateway over a directory", () => open("unicode"));
