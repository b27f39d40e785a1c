import { randomBytes } from "node:crypto";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Logger } from "pino";
import type { Authenticator } from "../auth/authenticator.ts";
import type { ServeOptions } from "../config/options/groups.ts";
import type { Authorizer } from "../namespace/authorizer.ts";
import type { Backend } from "../namespace/lance-namespace.ts";
import type { Metrics } from "../observability/metrics/metrics.ts";
import type { CallerLimits } from "../pipeline/limits/caller-limits.ts";
import { packageFile, packageVersion } from "../runtime/package-files.ts";
import { ownProfiles, type Profiles } from "../server/admin/admin-server.ts";
import { createReadiness, type MetricsPage } from "../server/app/probes.ts";
import { RESETS_SHAPE } from "../server/connections/reset-allowance.ts";
import { createServer } from "../server/server.ts";
import type { TlsIdentity } from "../server/tls/identity.ts";
import { consoleSignInOf, createAdministration } from "./access/administration.ts";
import { announceReadiness, joinReadiness } from "./announce-readiness.ts";
import { type CallOptions, createApi } from "./api.ts";
import { type Served, servedAlone } from "./backends/served.ts";
import type { OpenAnnouncements } from "./events/open-webhooks.ts";
import type { AccessLog, AuditLog } from "./open-logs.ts";
import type { GatewayPlugin } from "./plugins.ts";
import { openDocument, openMcp } from "./services/open-endpoints.ts";
import { openSql, planViews } from "./services/open-sql.ts";
import type { SharedRates } from "./shared-rates.ts";
import type { OpenTracing } from "./tracing/open-tracing.ts";
import { RESETS, type Workers } from "./workers.ts";

/** How a gateway ends faster: `no delay` waits for running calls alone, and `cut off` for nothing. */
export type Haste = "no delay" | "cut off";

/** A listening gateway. */
export interface Gateway {
  /** Where it listens; on a Unix socket the path, the family `unix` and the port 0. */
  readonly address: AddressInfo;
  /** Reasons why catalogs are served read-only; an entry for each. */
  readonly readOnly: readonly string[];
  /** Whether it can answer calls now. */
  readonly ready: boolean;
  /** Metrics of the process. Default: they are turned off. */
  readonly metrics?: MetricsPage | undefined;
  readonly profiles: Profiles;
  /** Sets the lowest level of the log, in all threads. */
  setLogLevel(level: string): void;
  /**
   * Drains and closes everything; resolves to whether all running calls finished in time.
   *
   * @param haste Default: the gateway serves for the drain delay, and then waits for running calls.
   */
  close(haste?: Haste): Promise<boolean>;
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
      | "noMcp"
      | "mcpWrites"
      | "pageTokenSecret"
      | "socketPath"
      | "socketMode"
      | "auth"
      | "apiKeysFile"
      | "opaUrl"
      | "noDocs"
      | "metricsOn"
      | "trustedProxies"
      | "trustedProxyHeader"
      | "oidcIssuers"
      | "consoleOidcClientId"
      | "consoleOidcScope"
      | "sqlPort"
      | "sqlMemoryBytes"
      | "sqlKeptBytes"
      | "sqlThreads"
      | "sqlTimeoutMs"
      | "sqlMaxRows"
      | "sqlMaxStatements"
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
  readonly trail?: AuditLog | undefined;
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

/** How long events and logs wait for calls that were cut off, in milliseconds: one may have changed something. */
const LAST_RECORDS_MS = 1_000;

/** Serves a backend through all wires and the pipeline. Closing the gateway closes the backend, too. */
export function serveBackend(
  backend: Backend,
  options: WireOptions,
  context: GatewayContext,
): Promise<ReplaceableGateway> {
  return serve({ ...servedAlone({ backend, limits: options }), options, context });
}

/** A gateway whose databases, and whatever decides about calls to them, can be replaced. */
export interface ReplaceableGateway extends Gateway {
  /** Answers all later calls by something else; resolves when the running calls have ended. */
  replace(next: State): Promise<void>;
}

/** Everything by which a gateway answers calls. */
export interface State extends Served {
  readonly options: WireOptions;
  readonly context: GatewayContext;
}

/** Serves databases through all wires and the pipeline. */
export async function serve(first: State): Promise<ReplaceableGateway> {
  const { options, context } = first;
  const { log, metrics, plugins = [], tracing, dispatcher, tls, workers } = context;
  let current = first;
  const ownSecret = randomBytes(32).toString("base64url");
  const api = createApi({
    ...callOptionsOf(first),
    ...{ bufferedBytes: workers?.bufferedBytes, workerCount: workers?.count, log, metrics },
  });
  const readiness = createReadiness();
  const own = workers === undefined ? readiness : joinReadiness(readiness, workers);
  own.subscribe(() => log.info(own.closed ? "draining" : own.ready ? "ready" : "not ready"));
  const sql = openSql(() => current.options);
  const service = planViews(api.service, sql.runner);
  const server = createServer({
    ...options,
    ...api,
    service,
    connections: workers?.connections,
    resetCells: workers?.openCells(RESETS, RESETS_SHAPE),
    plugins: plugins.flatMap(({ fastify }) => fastify ?? []),
    readiness,
    metrics: options.metricsOn === "admin" ? undefined : metrics?.page,
    documents: openDocument(options),
    noteAccess: context.access?.noteBy(api.mask),
    console: options.noConsole
      ? undefined
      : {
          directory: CONSOLE_DIRECTORY,
          signIn: () => consoleSignInOf(current.options, current.databases.keys()),
        },
    flight: { secret: () => current.options.pageTokenSecret ?? ownSecret, sql },
    mcp: openMcp(() => current.options, service, sql),
    log,
    addressing: first.addressing,
    tls,
  });
  metrics?.watchConnections(server.figures);
  for (const [name, backend] of backendsByName(first)) metrics?.watchBackend(name, backend);
  const { socketPath: path, socketMode: mode = DEFAULT_SOCKET_MODE, host, port } = options;
  const address = await server.listen(
    path === undefined ? { host, port, reusePort: workers !== undefined } : { path, mode },
  );
  if (options.sqlPort !== undefined)
    await server
      .listen({ host, port: options.sqlPort, reusePort: workers !== undefined })
      .catch(async (error) => {
        await server.close({ graceMs: 0 });
        throw error;
      });
  const served = [...new Set(first.backends.map(({ name }) => name))];
  const listening = { address: address.address, port: address.port, sqlPort: options.sqlPort };
  log.info({ ...BUILD, backends: served, ...listening }, "listening");
  // The engine takes a moment to load. Calls that need it wait meanwhile, and the probes report when it is ready.
  void announceReadiness(() => current.backends, own);
  return {
    address,
    readOnly: first.backends.flatMap(({ readOnly }) => readOnly ?? []),
    get ready() {
      return own.ready;
    },
    metrics: metrics?.page,
    profiles: ownProfiles,
    setLogLevel(level) {
      log.level = level;
    },
    replace(next) {
      const former = backendsByName(current);
      current = next;
      server.readdress(next.addressing);
      server.noteAccessBy(next.context.access?.noteBy(api.mask));
      const replaced = api.replace(callOptionsOf(next));
      const now = backendsByName(next);
      for (const [name, backend] of now) metrics?.watchBackend(name, backend);
      for (const name of former.keys()) if (!now.has(name)) metrics?.forgetBackend(name);
      return replaced;
    },
    async close(haste) {
      const { drainSeconds, drainDelayMs = 0 } = current.options;
      own.close();
      const graceMs = haste === "cut off" ? 0 : drainSeconds * 1000;
      const delayMs = haste === undefined ? drainDelayMs : 0;
      const finished = await server.close({ graceMs, delayMs });
      await sql.close();
      const { authenticator, authorizer, rates, trail, access } = current.context;
      for (const part of [authenticator, authorizer, rates, tls]) part?.close();
      await closeAll(current.backends);
      await Promise.race([api.ended(), sleep(LAST_RECORDS_MS, undefined, { ref: false })]);
      await Promise.all([dispatcher?.close(), trail?.close(), access?.close(), tracing?.close()]);
      log.info({ finished }, "stopped");
      return finished;
    },
  };
}

function callOptionsOf({ databases, routes, options, context }: State): CallOptions {
  const { plugins = [], authenticator, authorizer, trail, tracing, announcements, rates, workers } = context;
  const { maxBufferedBytes, readOnly, pageTokenSecret } = options;
  const interceptors = plugins.flatMap((plugin) => plugin.interceptors ?? []);
  return {
    ...callerLimitsOf(options),
    ...{ databases, routes, interceptors, authenticator, authorizer, pageTokenSecret, readOnly },
    ...{ trail, announcements, tracing: tracing?.tracing, maxBufferedBytes },
    administration: createAdministration(options, authorizer, databases),
    version: BUILD.version,
    ...{ openCells: workers?.openCells, shareBuckets: rates?.shareBuckets },
  };
}

/** Returns the backends by the names of their databases; an only one has none. */
function backendsByName({ databases }: Served): ReadonlyMap<string, Backend> {
  const entries = [...databases].flatMap(([name = "", { backend }]) =>
    // The only database, or the default one, is also under no name.
    name !== "" || databases.size === 1 ? [[name, backend] as const] : [],
  );
  return new Map(entries);
}

function callerLimitsOf(options: CallerLimits): CallerLimits {
  const { rateLimits, maxCallerCalls, maxCallerDownloads, maxCallerBytes, maxQueryMs, maxQueryRows } =
    options;
  return { rateLimits, maxCallerCalls, maxCallerDownloads, maxCallerBytes, maxQueryMs, maxQueryRows };
}

/** Where the build writes the console; the sources and the package have it in the same place. */
const CONSOLE_DIRECTORY = fileURLToPath(packageFile("dist/console"));

/** Only the owner of the file of a socket may connect. */
const DEFAULT_SOCKET_MODE = 0o600;

/** Versions in metrics and in the log. */
export const BUILD = { version: packageVersion(), node: process.version };

async function closeAll(backends: readonly Backend[]): Promise<void> {
  await Promise.all(backends.map((backend) => backend.close()));
}
