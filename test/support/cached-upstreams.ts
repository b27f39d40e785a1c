import { pino } from "pino";
import { createGrpcBackend } from "../../src/backends/grpc/index.ts";
import { createRestBackend } from "../../src/backends/rest/index.ts";
import type { Backend } from "../../src/namespace/lance-namespace.ts";

const log = pino({ level: "silent" });
const cache = { ttlMs: 3_600_000 };

/** Backends for the upstream at a port by their protocol; each caches answers for an hour. */
export const CACHED_UPSTREAMS: Readonly<Record<string, (port: number) => Promise<Backend>>> = {
  REST: (port) => createRestBackend({ uri: `http://127.0.0.1:${port}`, cache, log }),
  gRPC: (port) => createGrpcBackend({ addresses: [`127.0.0.1:${port}`], cache, log }),
};
