import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { Logger } from "pino";
import type { Authenticator } from "../auth/authenticator.ts";
import { FAILURES_SHAPE } from "../auth/failure-delay.ts";
import { createDatabasesBackend } from "../backends/databases/index.ts";
import { createReadAhead } from "../backends/dir/operations/read/read-ahead.ts";
import type { Databases } from "../config/configuration.ts";
import { UsageError } from "../config/option-spec.ts";
import type { ServeOptions } from "../config/options.ts";
import type { FileTrail } from "../log/lines/trail.ts";
import { createMetrics, type Metrics } from "../metrics/metrics.ts";
import type { Authorizer } from "../namespace/authorizer.ts";
import type { Backend } from "../namespace/lance-namespace.ts";
import { setTracing } from "../namespace/tracing.ts";
import type { CallerLimits } from "../pipeline/caller-limits.ts";
import type { ServiceOptions } from "../pipeline/create-service.ts";
import type { Database } from "../pipeline/databases.ts";
import type { Addressing } from "../server/addressing.ts";
import { createReadiness } from "../server/readiness.ts";
import { RESETS_SHAPE } from "../server/reset-allowance.ts";
import { createServer } from "../server/server.ts";
import type { TlsIdentity } from "../server/tls/identity.ts";
import { announceReadiness, joinReadiness } from "./announce-readiness.ts";
import { createApi } from "./api.ts";
import { type AccessLog, openAccess } from "./open-access.ts";
import { type OpenAnnouncements, openAnnouncements } from "./open-announcements.ts";
import { openAudit } from "./open-audit.ts";
import { openAuthenticator } from "./open-authenticator.ts";
import { openAuthorizer } from "./open-authorizer.ts";
import { openBackend } from "./open-backend.ts";
import { openDocument } from "./open-document.ts";
import { openSharedRates, type SharedRates } from "./open-shared-rates.ts";
import { openTls } from "./open-tls.ts";
import { backendsOf, loadPlugins } from "./plugins/load-plugins.ts";
import type { GatewayPlugin } from "./plugins/plugin.ts";
import { type OpenTracing, openTracing } from "./tracing/open-tracing.ts";
import { packageVersion } from "./version.ts";
import { FAILURES, RESETS, type Workers } from "./workers.ts";

/** A listening gateway. */
export interface Gateway {
  /** Where it listens; on a Unix socket the path, the family `unix` and the port 0. */
  readonly address: AddressInfo;
  /** Reasons why catalogs are served read-only; an entry for each. */
  readonly readOnly: readonly string[];
  /** Drains and closes everything; resolves to whether all running calls finished in time. */
  close(): Promise<boolean>;
}

/** Options of the wires and the pipeline, for any backend. */
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
      | "readOnly"
      | "noConsole"
      | "pageTokenSecret"
      | "socketPath"
      | "socketMode"
      | "auth"
      | "noDocs"
      | "trustedProxies"
      | keyof CallerLimits
    >
  >;

/** Dependencies of a gateway besides its options and its databases. */
export interface GatewayContext extends OpenAnnouncements {
  readonly log: Logger;
  /** Counts the calls. Default: calls are not counted, and `/metrics` does not exist. */
  readonly metrics?: Metrics | undefined;
  /** Default: none. */
  readonly plugins?: readonly GatewayPlugin[] | undefined;
  /** Proves who calls. Default: everyone may do everything. */
  readonly authenticator?: Authenticator | undefined;
  /** Decides about single objects. Default: roles decide. */
  readonly authorizer?: Authorizer | undefined;
  /** Receives a line about each call; closing the gateway closes it. Default: lines are not written. */
  readonly trail?: FileTrail | undefined;
  /** Traces the calls; closing the gateway closes it. Default: calls are not traced. */
  readonly tracing?: OpenTracing | undefined;
  /** Receives a line about each request; closing the gateway closes it. Default: lines are not written. */
  readonly access?: AccessLog | undefined;
  /** Shares rates with other gateways; closing the gateway closes it. Default: rates are not shared. */
  readonly rates?: SharedRates | undefined;
  /** Certificate of the port; closing the gateway closes it. Default: the port speaks plain text. */
  readonly tls?: TlsIdentity | undefined;
  /** The other workers of the process, which listen on the port, too. Default: none. */
  readonly workers?: Workers | undefined;
}

/** Serves a backend through all wires and the pipeline. Closing the gateway closes the backend, too. */
export function serveBackend(
  backend: Backend,
  options: WireOptions,
  context: GatewayContext,
): Promise<Gateway> {
  const calls = context.workers?.database(0).calls;
  const databases = new Map([[undefined, { backend, limits: options, calls }]]);
  return listen({ databases, backends: [backend] }, options, context);
}

/** Serves several databases through all wires and the pipeline. Closing the gateway closes all of them. */
export function serveDatabases(
  named: ReadonlyMap<string, Database>,
  { routes, pathPrefix, fallback }: Omit<Databases, "byName">,
  options: WireOptions,
  context: GatewayContext,
): Promise<Gateway> {
  const root = routes.some(({ by }) => by === "namespace")
    ? { backend: createDatabasesBackend([...named.keys()]), limits: options }
    : undefined;
  const unnamed = fallback === undefined ? root : named.get(fallback);
  const databases = new Map<string | undefined, Database>(named);
  if (unnamed !== undefined) databases.set(undefined, unnamed);
  const hosts = routes.flatMap((route) => (route.by === "host" ? Object.keys(route.hosts) : []));
  const backends = [...named.values()].map(({ backend }) => backend);
  return listen({ databases, backends, routes, addressing: { pathPrefix, hosts } }, options, context);
}

/** Databases, and the routes by which a call selects one. */
interface Served extends Pick<ServiceOptions, "databases" | "routes"> {
  /** Backends that determine readiness, and that the gateway closes at the end. */
  readonly backends: readonly Backend[];
  readonly addressing?: Addressing;
}

async function listen(
  { databases, backends, routes, addressing }: Served,
  options: WireOptions,
  context: GatewayContext,
): Promise<Gateway> {
  const { log, metrics, plugins = [], authenticator, authorizer, trail, access, tracing } = context;
  const { announcements, dispatcher, rates, tls, workers } = context;
  const { maxBufferedBytes, readOnly, pageTokenSecret } = options;
  const { bufferedBytes, connections, openCells } = workers ?? {};
  const interceptors = plugins.flatMap((plugin) => plugin.interceptors ?? []);
  const api = createApi({
    ...callerLimitsOf(options),
    ...{ databases, routes, interceptors, authenticator, authorizer, pageTokenSecret, readOnly },
    ...{ trail, announcements },
    ...{ maxBufferedBytes, bufferedBytes, openCells, shareBuckets: rates?.shareBuckets },
    ...{ log, metrics, tracing: tracing?.tracing },
  });
  const readiness = createReadiness();
  const own = workers === undefined ? readiness : joinReadiness(readiness, workers);
  own.subscribe(() => log.info(own.closed ? "draining" : own.ready ? "ready" : "not ready"));
  const server = createServer({
    ...options,
    ...api,
    connections,
    resetCells: openCells?.(RESETS, RESETS_SHAPE),
    plugins: plugins.flatMap(({ fastify }) => fastify ?? []),
    readiness,
    metrics: metrics?.page,
    documents: openDocument(options),
    noteAccess: access?.noteBy(api.mask),
    console: options.noConsole ? undefined : CONSOLE_DIRECTORY,
    log,
    addressing,
    tls,
  });
  metrics?.watchConnections(server.figures);
  for (const [name = "", { backend }] of databases) {
    // The only database, or the default one, is also under no name.
    if (backend.figures !== undefined && (name !== "" || databases.size === 1))
      metrics?.watchBackend(name, backend.figures);
  }
  const { socketPath: path, socketMode: mode = DEFAULT_SOCKET_MODE, host, port } = options;
  const address = await server.listen(
    path === undefined ? { host, port, reusePort: workers !== undefined } : { path, mode },
  );
  const served = [...new Set(backends.map(({ name }) => name))];
  log.info({ ...BUILD, backends: served, address: address.address, port: address.port }, "listening");
  // The engine takes a moment to load. Calls that need it wait meanwhile, and the probes report when it is ready.
  void announceReadiness(backends, own);
  return {
    address,
    readOnly: backends.flatMap(({ readOnly }) => readOnly ?? []),
    async close() {
      const { drainSeconds, drainDelayMs: delayMs = 0 } = options;
      own.close();
      const finished = await server.close({ graceMs: drainSeconds * 1000, delayMs });
      authenticator?.close();
      authorizer?.close();
      rates?.close();
      tls?.close();
      await Promise.all([closeAll(backends), dispatcher?.close()]);
      await Promise.all([trail?.close(), access?.close(), tracing?.close()]);
      log.info({ finished }, "stopped");
      return finished;
    },
  };
}

function callerLimitsOf(options: CallerLimits): CallerLimits {
  const { rateLimits, maxCallerCalls, maxCallerDownloads, maxCallerBytes, maxQueryMs, maxQueryRows } =
    options;
  return { rateLimits, maxCallerCalls, maxCallerDownloads, maxCallerBytes, maxQueryMs, maxQueryRows };
}

/** Where the build writes the console; the sources and the package have it in the same place. */
const CONSOLE_DIRECTORY = join(import.meta.dirname, "..", "..", "dist", "console");

/** Only the owner of the file of a socket may connect. */
const DEFAULT_SOCKET_MODE = 0o600;

const BUILD = { version: packageVersion(), node: process.version };

async function closeAll(backends: readonly Backend[]): Promise<void> {
  await Promise.all(backends.map((backend) => backend.close()));
}

/**
 * Starts the gateway, as `lance-gateway serve` does.
 *
 * @param databases several databases. Default: the single database that the options describe.
 * @param workers the other workers of the process. Default: none.
 * @throws UsageError if a plugin cannot be loaded, and Error if a backend cannot be opened.
 */
export async function startGateway(
  options: ServeOptions,
  log: Logger,
  databases?: Databases,
  workers?: Workers,
): Promise<Gateway> {
  const plugins = await loadPlugins(options.plugins, log);
  const metrics = options.noMetrics ? undefined : createMetrics(workers?.gatherMetrics, BUILD);
  if (metrics !== undefined) workers?.provideMetrics(metrics.snapshot);
  const failures = options.auth.length === 0 ? undefined : workers?.openCells(FAILURES, FAILURES_SHAPE);
  const authenticator = await openAuthenticator(options, log, failures);
  const authorizer = await openAuthorizer(options, log, metrics?.decidePolicy);
  const trail = await openAudit(options, log, (lines) => metrics?.loseLines("audit", lines));
  const access = await openAccess(options.accessLog, log, (lines) => metrics?.loseLines("access", lines));
  const tracing = await openTracing(process.env, log);
  setTracing(tracing?.tracing);
  const tls = await openTls(options, log);
  const rates = await openSharedRates(options, log, () => metrics?.failSharedRate());
  const events = await openAnnouncements(options, { log, metrics, databases, workers });
  const context: GatewayContext = {
    ...{ log, metrics, plugins, authenticator, authorizer, trail, access, tracing, rates, tls, workers },
    ...events,
  };
  const readAhead = createReadAhead({ maxBytes: options.readAheadBytes });
  const surroundings = { log, readAhead, looksAfterTables: true, backends: backendsOf(plugins) };
  const opened = new Map<string, Database>();
  try {
    if (databases === undefined) {
      const own = { noteDecision: metrics?.noteFor(), upkeepMetrics: metrics?.upkeepFor() };
      const shared = workers?.database(0);
      const backend = await openBackend(options, { ...surroundings, ...own, shared });
      opened.set("", { backend, limits: options });
      return await serveBackend(backend, options, context);
    }
    for (const [name, limits] of databases.byName) {
      const own = { noteDecision: metrics?.noteFor(name), upkeepMetrics: metrics?.upkeepFor(name) };
      const shared = workers?.database(opened.size);
      const backend = await openBackend(limits, { ...surroundings, ...own, shared }).catch((cause) => {
        const Mistake = cause instanceof UsageError ? UsageError : Error;
        throw new Mistake(`database ${name}: ${(cause as Error).message}`, { cause });
      });
      opened.set(name, { backend, limits, calls: shared?.calls });
    }
    return await serveDatabases(opened, databases, options, context);
  } catch (error) {
    authenticator?.close();
    authorizer?.close();
    rates?.close();
    tls?.close();
    await closeAll([...opened.values()].map(({ backend }) => backend));
    await Promise.all([trail?.close(), access?.close(), tracing?.close(), events.dispatcher?.close()]);
    throw error;
  }
}
