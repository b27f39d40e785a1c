import type { AddressInfo } from "node:net";
import type { Logger } from "pino";
import { createDirectoryBackend } from "../backends/dir/index.ts";
import { DIALECTS } from "../dialects/registry.ts";
import { LanceDbService } from "../gen/lance/gateway/v1/lancedb_pb.ts";
import { LanceNamespaceService } from "../gen/lance/namespace/v1/service_pb.ts";
import type { Backend } from "../namespace/port.ts";
import { createService } from "../pipeline/service.ts";
import { createReadiness } from "../server/readiness.ts";
import { createServer } from "../server/server.ts";
import { createTranscoder } from "../transcode/transcoder.ts";
import { createRestHandler } from "../wires/rest.ts";
import type { ServeOptions } from "./options.ts";

/** A gateway that listens. */
export interface Gateway {
  readonly address: AddressInfo;
  /** Drains and closes everything; resolves to whether all running calls finished in time. */
  close(): Promise<boolean>;
}

/** The options of the wires and the pipeline, whatever the backend. */
export type WireOptions = Pick<
  ServeOptions,
  "host" | "port" | "maxMessageBytes" | "maxUploadBytes" | "maxBufferedBytes" | "drainSeconds"
>;

/** Puts all wires and the pipeline before a backend, and listens. Closing it closes the backend too. */
export async function serveBackend(backend: Backend, options: WireOptions, log: Logger): Promise<Gateway> {
  const service = createService({ backend, limits: options });
  const services = [LanceNamespaceService, LanceDbService];
  const transcoders = DIALECTS.map((dialect) => createTranscoder(services, dialect));
  const { maxMessageBytes } = options;
  const rest = createRestHandler({ transcoders, service, log, maxMessageBytes });
  const readiness = createReadiness();
  const server = createServer({ service, rest, readiness, log, maxMessageBytes });
  const address = await server.listen(options);
  // Loading the engine takes a moment, which calls that need it wait for; the probes tell when it is over.
  void backend.ready().then((ready) => readiness.set(ready));
  return {
    address,
    async close() {
      const finished = await server.close({ graceMs: options.drainSeconds * 1000 });
      await backend.close();
      return finished;
    },
  };
}

/** Starts the gateway over a directory, as `lance-gateway serve` does. */
export async function startGateway(options: ServeOptions, log: Logger): Promise<Gateway> {
  const { root, tableDirectory, maxUploadBytes, managedVersioning, idleSeconds } = options;
  const backend = await createDirectoryBackend({
    root,
    tableDirectory,
    maxUploadBytes,
    uploadPartBytes: options.uploadPartBytes,
    indexCacheBytes: options.indexCacheBytes,
    metadataCacheBytes: options.metadataCacheBytes,
    maxOpenTables: options.maxOpenTables,
    tableIdleMs: idleSeconds * 1000,
    managedVersioning,
    log,
  });
  try {
    return await serveBackend(backend, options, log);
  } catch (error) {
    await backend.close();
    throw error;
  }
}
