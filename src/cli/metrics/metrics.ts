import type { NoteDecision } from "../../namespace/decisions.ts";
import type { CallMetrics } from "../../pipeline/measure.ts";
import type { MetricsPage } from "../../server/router.ts";
import { expose } from "./exposition.ts";
import { createTallies } from "./tallies.ts";

/** The metrics of one gateway. */
export interface Metrics {
  readonly calls: CallMetrics;
  /** What counts decisions about a database's upstream that are no call's own; no name stands for the only one. */
  noteFor(database?: string): NoteDecision;
  readonly page: MetricsPage;
}

/** When the process is watched from, if nobody asks before: the library shall not hold up the start. */
const WATCH_AFTER_MS = 1_000;

/** Creates metrics that begin with nothing; their page has those of the process, too. */
export function createMetrics(): Metrics {
  const tallies = createTallies();
  setTimeout(watchProcess, WATCH_AFTER_MS).unref();
  return {
    calls: tallies,
    noteFor: (database) => tallies.noteFor(database),
    page: {
      contentType: "text/plain; version=0.0.4; charset=utf-8",
      text: async () => expose(tallies) + (await (await watchProcess()).metrics()),
    },
  };
}

/** What can write its metrics down. */
type Source = { metrics(): Promise<string> };

/** Metrics of the process are the same for all gateways in it. */
let source: Promise<Source> | undefined;

/** Begins to watch the process, once; the library counts from then on. */
function watchProcess(): Promise<Source> {
  source ??= import("prom-client").then(({ default: { collectDefaultMetrics, Registry } }) => {
    const register = new Registry();
    collectDefaultMetrics({ register });
    return register;
  });
  return source;
}
