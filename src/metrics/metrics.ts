import type { NoteDecision } from "../namespace/decisions.ts";
import type { CallMetrics } from "../pipeline/measure.ts";
import type { CountRefusal } from "../pipeline/refusals.ts";
import type { MetricsPage } from "../server/router.ts";
import { expose } from "./exposition.ts";
import { createTallies } from "./tallies.ts";

/** The metrics of one gateway. */
export interface Metrics {
  readonly calls: CallMetrics;
  /** Counts requests that never became a call. */
  readonly refuse: CountRefusal;
  /** What counts decisions about a database's upstream that are no call's own; no name stands for the only one. */
  noteFor(database?: string): NoteDecision;
  readonly page: MetricsPage;
}

/** When the process is watched from, if nobody asks before: the library shall not hold up the start. */
const WATCH_AFTER_MS = 1_000;

/** Creates metrics that begin with nothing; their page has those of the process, too. */
export function createMetrics(): Metrics {
  const tallies = createTallies();
  setTimeout(() => watchProcess().catch(forgetSource), WATCH_AFTER_MS).unref();
  return {
    calls: tallies,
    refuse: tallies.refuse,
    noteFor: (database) => tallies.noteFor(database),
    page: {
      contentType: "text/plain; version=0.0.4; charset=utf-8",
      text: async () => expose(tallies) + (await processMetrics()),
    },
  };
}

/** What can write its metrics down. */
type Source = { metrics(): Promise<string> };

/** Metrics of the process are the same for all gateways in it. */
let source: Promise<Source> | undefined;

/** The metrics of the process; none while the library cannot be loaded, as when there are no file descriptors left. */
async function processMetrics(): Promise<string> {
  try {
    return await (await watchProcess()).metrics();
  } catch {
    forgetSource();
    return "";
  }
}

function forgetSource(): void {
  source = undefined;
}

/** Begins to watch the process, once; the library counts from then on. */
function watchProcess(): Promise<Source> {
  source ??= import("prom-client").then(({ default: { collectDefaultMetrics, Registry } }) => {
    const register = new Registry();
    collectDefaultMetrics({ register });
    return register;
  });
  return source;
}
