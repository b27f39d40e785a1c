import { randomBytes } from "node:crypto";
import type { Logger } from "pino";
import { FAILURES_SHAPE } from "../auth/authenticator.ts";
import { joinCache } from "../backends/dir/cache/join-cache.ts";
import { createEngineTurns } from "../backends/dir/concurrency/turns.ts";
import { createReadAhead } from "../backends/dir/operations/read/read-ahead.ts";
import { createAnswerBudget } from "../backends/resilience/answer-budget.ts";
import { PAUSES_SHAPE } from "../backends/upstream-identity/refused-fetches.ts";
import type { Configuration, Databases } from "../config/configuration.ts";
import type { ServeOptions } from "../config/options/groups.ts";
import { createEventTallies } from "../observability/metrics/background-tallies.ts";
import { createMetrics } from "../observability/metrics/metrics.ts";
import type { Database } from "../pipeline/call/databases.ts";
import { lookNow } from "../runtime/files/follow.ts";
import { setTracing } from "../runtime/tracing.ts";
import { servedAlone, servedByName } from "./backends/served.ts";
import { startCache } from "./cache/start-cache.ts";
import { BUILD, type Gateway, type Haste, type State, serve } from "./compose.ts";
import { announcementsTo, openLiveWebhooks } from "./events/open-webhooks.ts";
import { openTls } from "./open-tls.ts";
import { backendsOf, loadPlugins } from "./plugins.ts";
import {
  closeGeneration,
  createFormerGenerations,
  type Generation,
  type GenerationContext,
  openGeneration,
} from "./reload/generation.ts";
import type { PreparedChange } from "./reload/plan-changes.ts";
import { openTracing } from "./tracing/open-tracing.ts";
import { FAILURES, PAUSES, type Workers } from "./workers.ts";

/** A gateway that takes over changes of its configuration. */
export interface RunningGateway extends Gateway {
  /**
   * Opens what a changed configuration needs. The gateway serves by the former one until `commit` is called.
   *
   * @throws UsageError for mistakes, and Error if a backend cannot be opened.
   */
  prepare(configuration: Configuration): Promise<PreparedChange>;
  /** Reads files of keys, policies, certificates and secrets that have changed; resolves when all calls count by them, and by committed changes. */
  refresh(): Promise<void>;
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
  // The main thread delivers the events of workers.
  const tally = metrics?.events ?? createEventTallies();
  const dispatcher =
    workers === undefined ? await openLiveWebhooks({ options, databases }, { log, tally }) : undefined;
  const sink = dispatcher ?? workers?.events;
  const ownCache = workers === undefined ? await startCache(options, databases, log) : undefined;
  const cacheAccess = workers?.cache ?? ownCache?.access;
  const cache = cacheAccess && joinCache(cacheAccess);
  if (cache !== undefined) metrics?.watchCache(cache.figures);
  const readAhead = createReadAhead({ maxBytes: options.readAheadBytes });
  const engineTurns = createEngineTurns(workers?.count);
  const answers = createAnswerBudget(answerBytesOf(options), workers?.answerBytes);
  const context: GenerationContext = {
    ...{ log, metrics, workers },
    failures: ({ auth }) => (auth.length === 0 ? undefined : workers?.openCells(FAILURES, FAILURES_SHAPE)),
    surroundings: {
      ...{ log, cache, readAhead, engineTurns, answers, looksAfterTables: true },
      backends: backendsOf(plugins),
      tokenPauses: workers?.openCells(PAUSES, PAUSES_SHAPE),
    },
  };
  // Page tokens stay valid when the configuration changes.
  const drawnSecret = randomBytes(32).toString("base64url");
  const shared = { log, metrics, plugins, tracing, tls, workers, dispatcher };
  const stateOf = (generation: Generation): State => {
    const { configuration, databases: named, ...parts } = generation;
    const { options: own, databases: routing } = configuration;
    const wires = { ...own, pageTokenSecret: own.pageTokenSecret ?? drawnSecret };
    const served =
      routing === undefined ? servedAlone(named.get("") as Database) : servedByName(named, routing, wires);
    const announcements = sink && announcementsTo(sink, own);
    return { ...served, options: wires, context: { ...shared, ...parts, announcements } };
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
        const events = await dispatcher?.prepare(configuration);
        const next = await openGeneration(configuration, context, former).catch(async (error: unknown) => {
          await events?.abort();
          throw error;
        });
        return {
          commit() {
            events?.commit();
            running = next;
            answers.resize(answerBytesOf(next.configuration.options));
            log.level = levelAfter(former, next, log.level);
            formers.retire(former, next, gateway.replace(stateOf(next)));
          },
          async abort() {
            await Promise.all([events?.abort(), closeGeneration(next, former)]);
          },
        };
      },
      refresh: lookNow,
      async close(haste?: Haste) {
        const finished = await close(haste);
        // Calls that were cut off may have left lines of the audit log.
        await formers.close();
        await ownCache?.close();
        return finished;
      },
    });
  } catch (error) {
    if (current !== undefined) await closeGeneration(current);
    tls?.close();
    await Promise.all([tracing?.close(), dispatcher?.close(), ownCache?.close()]);
    throw error;
  }
}

/** Answers of upstreams have half as much memory as requests have; a share of the same memory would let either keep the other out. */
function answerBytesOf({ maxBufferedBytes }: ServeOptions): number {
  return maxBufferedBytes / 2;
}

/** Returns the level of the log after a change; one that an operator has set stays unless the option has changed. */
function levelAfter(former: Generation, next: Generation, level: string): string {
  const { logLevel } = next.configuration.options;
  return logLevel === former.configuration.options.logLevel ? level : logLevel;
}
