import { pino } from "pino";
import { createComposedBackend } from "../../src/backends/composed/index.ts";
import { createGrpcBackend } from "../../src/backends/grpc/index.ts";
import { createRestBackend } from "../../src/backends/rest/index.ts";
import type { Backend } from "../../src/namespace/lance-namespace.ts";
import { createCaller } from "../support/caller.ts";
import { startRowlessServer } from "../support/catalogs/rowless-directory.ts";
import { contractSuite } from "./suite.ts";
import type { Fixture } from "./world.ts";

const limits = { maxUploadBytes: 2 ** 26 };
const log = pino({ level: "silent" });

/** Opens a catalog that commits the versions of its tables by a backend, and serves the rows here. */
async function open(connect: (port: number) => Promise<Backend>): Promise<Fixture> {
  const upstream = await startRowlessServer({ managedVersioning: true });
  const catalog = await connect(upstream.port);
  const backend = createComposedBackend(catalog, { log, allowedLocations: [upstream.root] });
  return {
    client: createCaller({ backend, limits }),
    async close() {
      await backend.close();
      await upstream.close();
    },
  };
}

const capabilities = { changesProperties: false, managesVersions: true };

contractSuite("a REST catalog that commits versions, with rows served here", {
  open: () => open((port) => createRestBackend({ uri: `http://127.0.0.1:${port}`, log })),
  capabilities,
});

contractSuite("a gRPC catalog that commits versions, with rows served here", {
  open: () => open((port) => createGrpcBackend({ addresses: [`127.0.0.1:${port}`], log })),
  capabilities,
});
