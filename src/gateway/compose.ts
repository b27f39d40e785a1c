import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { DescService } from "@bufbuild/protobuf";
import type { Logger } from "pino";
import { createDatabasesBackend } from "../backends/databases/index.ts";
import { createReadAhead, type ReadAhead } from "../backends/dir/operations/read/read-ahead.ts";
import type { Databases } from "../config/configuration.ts";
import { UsageError } from "../config/option-spec.ts";
import type { ServeOptions } from "../config/options.ts";
import { DIALECTS } from "../dialects/registry.ts";
import { LanceDbService } from "../gen/lance/gateway/v1/lancedb_pb.ts";
import { LanceNamespaceService } from "../gen/lance/namespace/v1/service_pb.ts";
import { createMetrics, type Metrics } from "../metrics/metrics.ts";
import { type ByteBudget, createByteBudget } from "../namespace/byte-budget.ts";
import type { Backend } from "../namespace/lance-namespace.ts";
import type { Service } from "../namespace/service.ts";
import { type BodyPace, createBodyPace } from "../pipeline/body-pace.ts";
import { createService } from "../pipeline/create-service.ts";
import type { Database } from "../pipeline/databases.ts";
import { createRefusalNotes } from "../pipeline/refusals.ts";
import type { Addressing } from "../server/addressing.ts";
import { createReadiness, type Readiness } from "../server/readiness.ts";
import { createServer } from "../server/server.ts";
import { createTranscoder, type Transcoder } from "../transcode/transcoder.ts";
import { openBackend } from "./open-backend.ts";

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
  "host" | "port" | "maxMessageBytes" | "maxUploadBytes" | "drainSeconds"
> &
  Partial<
    Pick<
      ServeOptions,
      | "maxBufferedBytes"
      | "maxConcurrentCalls"
      | "maxConnections"
      | "silenceMs"
      | "keepAliveMs"
      | "drainDelayMs"
      | "defaultDeadlineMs"
      | "corsOrigins"
      | "allowedHosts"
    >
  >;

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
  const shares = createShares(options);
  const databases = new Map([[undefined, { backend, limits: options }]]);
  const service = createService({ databases, metrics: metrics?.calls, ...shares });
  return listen(service, [backend], options, { log, metrics, ...shares });
}

/** Where a gateway tells what it does. */
interface Observers {
  readonly log: Logger;
  readonly metrics?: Metrics | undefined;
}

/** Shares of all requests, whichever wire they come by and whichever database they are for. */
interface Shares {
  /** Memory of requests. */
  readonly budget: ByteBudget;
  /** Turns of the event loop for Arrow bodies. */
  readonly pace: BodyPace;
}

function createShares({ maxBufferedBytes }: WireOptions): Shares {
  return { budget: createByteBudget(maxBufferedBytes), pace: createBodyPace() };
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
  const shares = createShares(options);
  const root = routes.some(({ by }) => by === "namespace")
    ? { backend: createDatabasesBackend([...databases.keys()]), limits: options }
    : undefined;
  const unnamed = fallback === undefined ? root : databases.get(fallback);
  const all = new Map<string | undefined, Database>(databases);
  if (unnamed !== undefined) all.set(undefined, unnamed);
  const service = createService({ databases: all, routes, metrics: metrics?.calls, ...shares });
  const hosts = routes.flatMap((route) => (route.by === "host" ? Object.keys(route.hosts) : []));
  const addressing = { pathPrefix, hosts };
  const backends = [...databases.values()].map(({ backend }) => backend);
  return listen(service, backends, options, { log, metrics, ...shares }, addressing);
}

async function listen(
  service: Service,
  backends: readonly Backend[],
  options: WireOptions,
  { log, metrics, budget, pace }: Observers & Shares,
  addressing?: Addressing,
): Promise<Gateway> {
  const services = [LanceNamespaceService, LanceDbService];
  const transcoders = DIALECTS.map((dialect) => createTranscoder(services, dialect));
  const refused = createRefusalNotes(log, knownSegments(services, transcoders), metrics?.refuse);
  const readiness = createReadiness();
  const server = createServer({
    ...options,
    service,
    transcoders,
    readiness,
    metrics: metrics?.page,
    log,
    refused,
    budget,
    addressing,
    accepted: () => pace.noteConnection(),
  });
  const address = await server.listen(options);
  // Loading the engine takes a moment, which calls that need it wait for; the probes tell when it is over.
  void announceReadiness(backends, readiness);
  return {
    address,
    readOnly: backends.flatMap(({ readOnly }) => readOnly ?? []),
    async close() {
      const { drainSeconds, drainDelayMs: delayMs = 0 } = options;
      const finished = await server.close({ graceMs: drainSeconds * 1000, delayMs });
      await closeAll(backends);
      return finished;
    },
  };
}

/** The parts of paths that the contract has. */
function knownSegments(
  services: readonly DescService[],
  transcoders: readonly Transcoder[],
): ReadonlySet<string> {
  const names = services.flatMap(({ typeName, methods }) => [typeName, ...methods.map(({ name }) => name)]);
  const segments = transcoders.flatMap(({ bindings }) =>
    bindings.flatMap(({ template }) => template.segments),
  );
  const literals = segments.flatMap((segment) => (typeof segment === "object" ? [segment.literal] : []));
  return new Set([...names, ...literals]);
}

/** How often a backend is asked until it is ready, and after that, in milliseconds. */
const READINESS_INTERVAL_MS = { unready: 1_000, ready: 3_000 } as const;

/**
 * Announces whether a backend can answer. With several, one is enough: calls fail that need one that is away, and the
 * others go on.
 */
async function announceReadiness(backends: readonly Backend[], readiness: Readiness): Promise<void> {
  while (!readiness.closed) {
    const ready = await Promise.all(
      backends.map(
        (backend) =>
          (readiness.ready && backend.mayBecomeUnready !== true) || backend.ready().catch(() => false),
      ),
    );
    readiness.set(ready.some(Boolean));
    if (readiness.ready && !backends.some(({ mayBecomeUnready }) => mayBecomeUnready)) return;
    const pause = READINESS_INTERVAL_MS[readiness.ready ? "ready" : "unready"];
    await sleep(pause, undefined, { ref: false });
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
  const readAhead = createReadAhead({ maxBytes: options.readAheadBytes });
  if (databases === undefined) return startOne(options, readAhead, { log, metrics });
  const opened = new Map<string, Database>();
  try {
    for (const [name, limits] of databases.byName) {
      const backend = await openBackend(limits, log, readAhead, metrics?.noteFor(name)).catch((cause) => {
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

async function startOne(
  options: ServeOptions,
  readAhead: ReadAhead,
  { log, metrics }: Observers,
): Promise<Gateway> {
  const backend = await openBackend(options, log, readAhead, metrics?.noteFor());
  try {
    return await serveBackend(backend, options, log, metrics);
  } catch (error) {
    await backend.close();
    throw error;
  }
}
