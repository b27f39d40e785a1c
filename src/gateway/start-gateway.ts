import { randomBytes } from "node:crypto";
import type { Logger } from "pino";
import { FAILURES_SHAPE } from "../auth/failure-delay.ts";
import { createReadAhead } from "../backends/dir/operations/read/read-ahead.ts";
import type { Configuration, Databases } from "../config/configuration.ts";
import type { ServeOptions } from "../config/options.ts";
import { createMetrics } from "../metrics/metrics.ts";
import { setTracing } from "../namespace/tracing.ts";
import type { Database } from "../pipeline/databases.ts";
import { BUILD, type Gateway, type State, serve } from "./compose.ts";
import { createFormerGenerations } from "./former-generations.ts";
import { closeGeneration, type Generation, type GenerationContext, openGeneration } from "./generation.ts";
import { openAnnouncements } from "./open-announcements.ts";
import { openTls } from "./open-tls.ts";
import { backendsOf, loadPlugins } from "./plugins/load-plugins.ts";
import { servedAlone, servedByName } from "./served.ts";
import { openTracing } from "./tracing/open-tracing.ts";
import { FAILURES, type Workers } from "./workers.ts";

/** A gateway that takes over changes of its configuration. */
export interface RunningGateway extends Gateway {
  /**
   * Opens what a changed configuration needs. The gateway serves by the former one until `commit` is called.
   *
   * @throws UsageError for mistakes, and Error if a backend cannot be opened.
   */
  prepare(configuration: Configuration): Promise<PreparedChange>;
}

/** A change that is ready to take effect. */
export interface PreparedChange {
  /** Serves by the new configuration from now on, and closes what only the former one used, once its calls have ended. */
  commit(): void;
  /** Closes what was opened. */
  abort(): Promise<void>;
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
): Promise<RunningGateway> {
  const plugins = await loadPlugins(options.plugins, log);
  const metrics = options.noMetrics ? undefined : createMetrics(workers?.gatherMetrics, BUILD);
  if (metrics !== undefined) workers?.provideMetrics(metrics.snapshot);
  const tracing = await openTracing(process.env, log);
  setTracing(tracing?.tracing);
  const tls = await openTls(options, log);
  const events = await openAnnouncements(options, { log, metrics, databases, workers });
  const readAhead = createReadAhead({ maxBytes: options.readAheadBytes });
  const context: GenerationContext = {
    ...{ log, metrics, workers },
    failures: ({ auth }) => (auth.length === 0 ? undefined : workers?.openCells(FAILURES, FAILURES_SHAPE)),
    surroundings: { log, readAhead, looksAfterTables: true, backends: backendsOf(plugins) },
  };
  // Page tokens stay valid when the configuration changes.
  const drawnSecret = randomBytes(32).toString("base64url");
  const shared = { log, metrics, plugins, tracing, tls, workers, ...events };
  const stateOf = (generation: Generation): State => {
    const { configuration, databases: named, ...parts } = generation;
    const { options: own, databases: routing } = configuration;
    const wires = { ...own, pageTokenSecret: own.pageTokenSecret ?? drawnSecret };
    const served =
      routing === undefined ? servedAlone(named.get("") as Database) : servedByName(named, routing, wires);
    return { ...served, options: wires, context: { ...shared, ...parts } };
  };
  let current: Generation | undefined;
  try {
    current = await openGeneration({ options, databases }, context);
    const gateway = await serve(stateOf(current));
    let running = current;
    const formers = createFormerGenerations(log);
    const { close } = gateway;
    return Object.assign(gateway, {
      async prepare(configuration: Configuration): Promise<PreparedChange> {
        const former = running;
        const next = await openGeneration(configuration, context, former);
        return {
          commit() {
            running = next;
            log.level = levelAfter(former, next, log.level);
            formers.retire(former, next, gateway.replace(stateOf(next)));
          },
          abort: () => closeGeneration(next, former),
        };
      },
      async close() {
        const finished = await close();
        // Calls that were cut off may have left lines of the audit log.
        await formers.close();
        return finished;
      },
    });
  } catch (error) {
    if (current !== undefined) await closeGeneration(current);
    tls?.close();
    await Promise.all([tracing?.close(), events.dispatcher?.close()]);
    throw error;
  }
}

/** Returns the level of the log after a change; one that an operator has set stays unless the option has changed. */
function levelAfter(former: Generation, next: Generation, level: string): string {
  const { logLevel } = next.configuration.options;
  return logLevel === former.configuration.options.logLevel ? level : logLevel;
}
