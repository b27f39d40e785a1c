import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { createDatabasesBackend } from "../backends/databases/index.ts";
import { DIALECTS } from "../dialects/registry.ts";
import { LanceDbService } from "../gen/lance/gateway/v1/lancedb_pb.ts";
import { LanceNamespaceService } from "../gen/lance/namespace/v1/service_pb.ts";
import type { Backend } from "../namespace/port.ts";
import type { Service } from "../namespace/service.ts";
import { limitConcurrency } from "../pipeline/concurrency.ts";
import { measure } from "../pipeline/measure.ts";
import { createRoutedService } from "../pipeline/route.ts";
import { createService } from "../pipeline/service.ts";
import type { Addressing } from "../server/addressing.ts";
import { createReadiness, type Readiness } from "../server/readiness.ts";
import { createServer } from "../server/server.ts";
import { createTranscoder } from "../transcode/transcoder.ts";
import { createRestHandler } from "../wires/rest.ts";
import { openBackend } from "./backends.ts";
import type { Databases } from "./configuration.ts";
import { createMetrics, type Metrics } from "./metrics/metrics.ts";
import { UsageError } from "./option-spec.ts";
import type { ServeOptions } from "./options.ts";

/** A gateway that listens. */
export interface Gateway {
  readonly address: AddressInfo;
  /** Why catalogs behind it cannot be written; one entry for each. */
  readonly readOnly: readonly string[];
  /** Drains and closes everything; resolves to whether all running calls finished in time. */
  close(): Promise<boolean>;
}

/** The options of the wires and the pipeline, whatever the backend. */
export type WireOptions = Pick<
  ServeOptions,
  "host" | "port" | "maxMessageBytes" | "maxUploadBytes" | "maxBufferedBytes" | "drainSeconds"
> &
  Partial<Pick<ServeOptions, "maxConcurrentCalls" | "corsOrigins">>;

/** The options of one database's part of the pipeline. */
export type DatabaseLimits = Pick<WireOptions, "maxUploadBytes" | "maxBufferedBytes" | "maxConcurrentCalls">;

/** A database behind a gateway. */
export interface Database {
  readonly backend: Backend;
  readonly limits: DatabaseLimits;
}

/**
 * Puts all wires and the pipeline before a backend, and listens. Closing it closes the backend too.
 *
 * @param metrics what counts the calls. Default: nothing does, and there is no `/metrics`.
 */
export function serveBackend(
  backend: Backend,
  options: WireOptions,
  log: Logger,
  metrics?: Metrics,
): Promise<Gateway> {
  return listen(serviceOf({ backend, limits: options }), [backend], options, { log, metrics });
}

/** Where a gateway tells what it does. */
interface Observers {
  readonly log: Logger;
  readonly metrics?: Metrics | undefined;
}

/** The same before several databases. Closing it closes them all. */
export function serveDatabases(
  databases: ReadonlyMap<string, Database>,
  routing: Omit<Databases, "byName">,
  options: WireOptions,
  log: Logger,
  metrics?: Metrics,
): Promise<Gateway> {
  const { routes, pathPrefix, fallback } = routing;
  const services = new Map([...databases].map(([name, database]) => [name, serviceOf(database)]));
  const root = routes.some(({ by }) => by === "namespace")
    ? serviceOf({ backend: createDatabasesBackend([...databases.keys()]), limits: options })
    : undefined;
  const service = createRoutedService({
    databases: services,
    routes,
    fallback: fallback === undefined ? root : services.get(fallback),
  });
  const addressing = { pathPrefix, host: routes.some(({ by }) => by === "host") };
  const backends = [...databases.values()].map(({ backend }) => backend);
  return listen(service, backends, options, { log, metrics }, addressing);
}

function serviceOf({ backend, limits }: Database): Service {
  const service = createService({ backend, limits });
  const { maxConcurrentCalls } = limits;
  return maxConcurrentCalls === undefined ? service : limitConcurrency(service, maxConcurrentCalls);
}

async function listen(
  pipeline: Service,
  backends: readonly Backend[],
  options: WireOptions,
  { log, metrics }: Observers,
  addressing?: Addressing,
): Promise<Gateway> {
  const service = metrics === undefined ? pipeline : measure(pipeline, metrics.calls);
  const services = [LanceNamespaceService, LanceDbService];
  const transcoders = DIALECTS.map((dialect) => createTranscoder(services, dialect));
  const { maxMessageBytes, corsOrigins } = options;
  const rest = createRestHandler({ transcoders, service, log, maxMessageBytes });
  const readiness = createReadiness();
  const server = createServer({
    service,
    rest,
    readiness,
    metrics: metrics?.page,
    log,
    maxMessageBytes,
    addressing,
    corsOrigins,
  });
  const address = await server.listen(options);
  // Loading the engine takes a moment, which calls that need it wait for; the probes tell when it is over.
  void announceReadiness(backends, readiness);
  return {
    address,
    readOnly: backends.flatMap(({ readOnly }) => readOnly ?? []),
    async close() {
      const finished = await server.close({ graceMs: options.drainSeconds * 1000 });
      await closeAll(backends);
      return finished;
    },
  };
}

const READINESS_INTERVAL_MS = 1_000;

/**
 * Waits until a backend can answer. With several, one is enough: those that are away are told of call by call, and
 * shall not take the others with them.
 */
async function announceReadiness(backends: readonly Backend[], readiness: Readiness): Promise<void> {
  while (!readiness.closed) {
    const ready = await Promise.all(backends.map((backend) => backend.ready()));
    if (ready.some(Boolean)) return readiness.set(true);
    await sleep(READINESS_INTERVAL_MS, undefined, { ref: false });
  }
}

async function closeAll(backends: readonly Backend[]): Promise<void> {
  await Promise.all(backends.map((backend) => backend.close()));
}

/**
 * Starts the gateway, as `lance-gateway serve` does.
 *
 * @param databases several databases; without them the options describe the only one
 */
export async function startGateway(
  options: ServeOptions,
  log: Logger,
  databases?: Databases,
): Promise<Gateway> {
  const metrics = options.noMetrics ? undefined : createMetrics();
  if (databases === undefined) return startOne(options, { log, metrics });
  const opened = new Map<string, Database>();
  try {
    for (const [name, limits] of databases.byName) {
      const backend = await openBackend(limits, log, metrics?.noteFor(name)).catch((cause: unknown) => {
        const Mistake = cause instanceof UsageError ? UsageError : Error;
        throw new Mistake(`database ${name}: ${(cause as Error).message}`, { cause });
      });
      opened.set(name, { backend, limits });
    }
    return await serveDatabases(opened, databases, options, log, metrics);
  } catch (error) {
    await closeAll([...opened.values()].map(({ backend }) => backend));
    throw error;
  }
}

async function startOne(options: ServeOptions, { log, metrics }: Observers): Promise<Gateway> {
  const backend = await openBackend(options, log, metrics?.noteFor());
  try {
    return await serveBackend(backend, options, log, metrics);
  } catch (error) {
    await backend.close();
    throw error;
  }
}
