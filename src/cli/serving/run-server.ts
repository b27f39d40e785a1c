import { existsSync } from "node:fs";
import { resolve } from "node:path";
import type { Logger } from "pino";
import { HAS_THREAD_LOCKS } from "../../backends/dir/concurrency/thread-locks.ts";
import type { Configuration } from "../../config/configuration.ts";
import { serviceLinks } from "../../config/layers.ts";
import { type Environment, UsageError } from "../../config/option-spec.ts";
import { SERVE_OPTIONS, type ServeOptions } from "../../config/options/groups.ts";
import { secretsOf } from "../../config/secrets.ts";
import { unknownVariables } from "../../config/serve-options.ts";
import { refuseStrangers, travelsInTheClear } from "../../gateway/access/open-access.ts";
import { prepareEngine } from "../../gateway/backends/open-backend.ts";
import { STANDARD_OUTPUT } from "../../gateway/open-logs.ts";
import type { RunningGateway } from "../../gateway/start-gateway.ts";
import { createLog, toStandardError } from "../../observability/log/log.ts";
import { keepTicksFast } from "../../runtime/internals/ticks.ts";
import { resumeCompilers } from "../../runtime/internals/v8-flags.ts";
import { canSharePort, type ListenAddress } from "../../server/port/listen.ts";
import { exitByForce, handleSignals, watchForUnhandled } from "../exit.ts";
import { trimHeapWhenIdle } from "../trim-heap.ts";
import { greeting } from "./greeting.ts";
import { type LoadedConfiguration, warnOfWritableFiles } from "./load-configuration.ts";
import { adminPlace } from "./open-admin.ts";
import { stampOfConfiguration, startReloads } from "./reload.ts";

/**
 * Time after which a start has more to do than others, such as to read a large catalog, which takes twice as long without compilers,
 * in milliseconds.
 */
const LONG_START_MS = 1_000;

/**
 * Serves until a signal comes (docs/configuration.md#signals), and takes over changes of the configuration.
 *
 * @param load reads the configuration again.
 * @throws UsageError, and Error with one clear line when the port or the root cannot be had.
 */
export async function runServer(
  loaded: LoadedConfiguration,
  load: () => Promise<LoadedConfiguration>,
  environment: Environment,
): Promise<void> {
  const first = withDrainDelay(loaded, environment);
  const { configuration } = first;
  const stamp = await stampOfConfiguration(configuration);
  const { options, databases } = configuration;
  await refuseStrangers(options);
  const place = adminPlace(options);
  // Standard output is for people: where the server listens. The log goes to standard error.
  const secrets = secretsOf(configuration, environment);
  const log = createLog(options.logLevel, secrets, toStandardError(options.logFormat));
  watchForUnhandled(log, "process", () => process.exit(1));
  keepTicksFast();
  for (const variable of serviceLinks(SERVE_OPTIONS, environment))
    log.warn({ variable }, "a variable of an option has the address of a Kubernetes Service, and no effect");
  for (const line of unknownVariables(environment)) log.warn(line);
  prepareEngine();
  // Plugins may start threads, and the cache has one.
  if (options.plugins.length > 0 || options.cacheDir !== undefined) resumeCompilers();
  const missing = missingRoots(configuration);
  const gateway = await start(configuration, log).catch((error: unknown) => {
    if (error instanceof UsageError) throw error;
    throw new Error(startFailure(error, options), { cause: error });
  });
  const again = async () => withDrainDelay(await load(), environment);
  const reloads = startReloads({ gateway, first, stamp, load: again, secrets, environment, log });
  const open = async (where: ListenAddress) => {
    const { openAdmin } = await import("./open-admin.ts");
    return openAdmin(where, options.metricsOn, gateway, () => reloads.shown, log);
  };
  const admin = await (place && open(place))?.catch(async (error: unknown) => {
    reloads.close();
    // No client knows this gateway yet, so there is nothing to drain.
    await gateway.close("cut off");
    throw new Error(startFailure(error, { host: options.adminHost, port: options.adminPort ?? 0 }), {
      cause: error,
    });
  });
  handleSignals({
    log,
    reload: () => void reloads.reload(),
    async end(signal) {
      reloads.close();
      // A person who presses Ctrl-C waits; whatever takes a gateway out of service sends SIGTERM.
      const isPerson = signal === "SIGINT" && loaded.configuration.options.drainDelayMs === undefined;
      await gateway.close(isPerson ? "no delay" : undefined);
      // Operators see the drain.
      await admin?.close();
    },
  });
  trimHeapWhenIdle(log);
  if (options.auth.length === 0 && options.insecure)
    log.warn("everyone who reaches the port may do everything, because of --insecure");
  if (options.auth.length > 0 && (await travelsInTheClear(options)))
    log.warn("callers' credentials travel in the clear; --tls-cert and --tls-key encrypt them");
  await warnOfWritableFiles(configuration, log);
  const { stdout, stderr } = process;
  // A log on standard output has nothing but its lines there.
  const hasLog = [options.auditLog, options.accessLog].includes(STANDARD_OUTPUT);
  const people = hasLog ? stderr : stdout;
  const created = missing.filter(existsSync);
  for (const root of created) log.info({ root }, "the directory did not exist, and has been created");
  const links = people.isTTY;
  people.write(greeting(options, databases, gateway, { admin: admin?.address, created, links }));
}

/** Returns the directories of the data that do not exist: a root that is mistyped would otherwise look like an empty catalog. */
function missingRoots({ options, databases }: Configuration): string[] {
  const all = databases === undefined ? [options] : [...databases.byName.values()];
  const roots = all.flatMap(({ backend, root }) =>
    backend === "dir" && !root.includes("://") ? [root] : [],
  );
  return [...new Set(roots.map((root) => resolve(root)))].filter((root) => !existsSync(root));
}

/** Starts the gateway in this thread, or in as many workers as the options say. */
async function start(configuration: Configuration, log: Logger): Promise<RunningGateway> {
  const { options, databases } = configuration;
  if (options.workers > 1) {
    const obstacle = await obstacleToWorkers(options);
    if (obstacle === undefined) {
      const { startWorkers } = await import("../workers/supervisor.ts");
      // From here on, other threads run JavaScript.
      resumeCompilers();
      return startWorkers(configuration, log, exitByForce);
    }
    log.warn({ workers: options.workers }, `a single thread serves: ${obstacle}`);
  }
  const { startGateway } = await import("../../gateway/start-gateway.ts");
  const late = setTimeout(resumeCompilers, LONG_START_MS);
  return startGateway(options, log, databases).finally(() => {
    clearTimeout(late);
    // No other thread runs JavaScript.
    resumeCompilers();
  });
}

/** Returns why workers cannot share the work; undefined if they can. */
async function obstacleToWorkers({ host, socketPath }: ServeOptions): Promise<string | undefined> {
  if (socketPath !== undefined) return "workers cannot share a Unix socket";
  if (!HAS_THREAD_LOCKS) return "workers need a Node that has locks between threads (24.5 or newer)";
  if (!(await canSharePort(host)))
    return "this system does not spread the connections of a port over workers";
  return undefined;
}

function startFailure(error: unknown, { host, port }: Pick<ServeOptions, "host" | "port">): string {
  switch ((error as NodeJS.ErrnoException).code) {
    case "EADDRINUSE":
      return `port ${(error as { readonly port?: number }).port ?? port} on ${host} is in use`;
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
      return `this machine does not have the address ${host}`;
    default:
      return error instanceof Error ? error.message : String(error);
  }
}

/** For balancers that ask for readiness every second or two, in milliseconds. */
const IN_CONTAINER_MS = 5_000;

/** Files by which Docker and Podman mark their containers. */
const MARKS = ["/.dockerenv", "/run/.containerenv"];

function withDrainDelay(loaded: LoadedConfiguration, environment: Environment): LoadedConfiguration {
  const { options, ...rest } = loaded.configuration;
  const { drainDelayMs = defaultDrainDelayMs(environment) } = options;
  return { ...loaded, configuration: { ...rest, options: { ...options, drainDelayMs } } };
}

/**
 * The drain delay when nobody has chosen one: some seconds in a container, where something else decides who gets new
 * connections and needs time to see the readiness. At a terminal a person waits for the end.
 */
function defaultDrainDelayMs(environment: Environment): number {
  if (process.stdout.isTTY || process.stderr.isTTY) return 0;
  const inContainer = environment["KUBERNETES_SERVICE_HOST"] !== undefined || MARKS.some(existsSync);
  return inContainer ? IN_CONTAINER_MS : 0;
}
