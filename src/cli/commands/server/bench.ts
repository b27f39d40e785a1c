import type { Namespace } from "../../../client/namespace.ts";
import { parsePath } from "../../../client/object-path.ts";
import { type OptionTable, UsageError } from "../../../config/option-spec.ts";
import { parseChoice, parseDuration, parseInteger } from "../../../config/parsers.ts";
import { catalogCommand } from "../catalog-command.ts";
import { textTable } from "../text-table.ts";

type Id = readonly string[];

/** The measured operations, with a call for each. All are reads, so that nothing is left behind. */
const CALLS: Readonly<
  Record<string, (namespace: Namespace, id: Id, signal: AbortSignal) => Promise<unknown>>
> = {
  list: (namespace, id, signal) => namespace.listTables({ id, limit: 100 }, { signal }),
  describe: (namespace, id, signal) => namespace.describeTable({ id }, { signal }),
  exists: (namespace, id, signal) => namespace.tableExists({ id }, { signal }),
  count: (namespace, id, signal) => namespace.countTableRows({ id }, { signal }),
  async query(namespace, id, signal) {
    for await (const _bytes of namespace.queryTable({ id, k: 100 }, { signal }).bytes());
  },
};

const OPTIONS = {
  call: {
    flag: "call",
    value: "NAME",
    help: "Call to measure: list (a page of 100 tables of a namespace), or describe, exists, count or query (100 rows) of a table.",
    fallback: "list",
    parse: parseChoice(Object.keys(CALLS)),
  },
  connections: {
    flag: "connections",
    value: "N",
    help: "Number of calls at a time.",
    fallback: "16",
    parse: parseInteger(1, 1024),
  },
  duration: {
    flag: "duration",
    value: "TIME",
    help: "Time to measure, after one second of warm-up.",
    fallback: "5s",
    parse: parseDuration,
  },
} as const satisfies OptionTable;

const WARM_UP_MS = 1_000;

/** `lance-gateway bench`: measures how fast a catalog answers this machine. */
export const bench = catalogCommand({
  operands: "[PATH]",
  access: "read",
  options: OPTIONS,
  async run({ namespace, operands: [path = ""], options, signal, print }) {
    const id = parsePath(path);
    const { call, connections, duration } = options;
    if (call !== "list" && id.length === 0) throw new UsageError(`--call ${call} needs the PATH of a table`);
    const run = () => (CALLS[call] as (typeof CALLS)[string])(namespace, id, signal);
    // A call that cannot succeed fails before the measurement.
    await run();
    await load(run, connections, WARM_UP_MS, signal);
    const times = await load(run, connections, duration, signal);
    signal.throwIfAborted();
    const figures = summary(times, duration);
    const rows = Object.entries(figures).map(([name, value]) => [name, String(value)]);
    await print(options.json ? `${JSON.stringify(figures)}\n` : textTable([["FIGURE", "VALUE"], ...rows]));
  },
});

/** Repeats a call for a time, and returns the duration of each call, in milliseconds. */
async function load(
  run: () => Promise<unknown>,
  connections: number,
  durationMs: number,
  signal: AbortSignal,
): Promise<number[]> {
  const times: number[] = [];
  const end = performance.now() + durationMs;
  async function worker() {
    for (let begun = performance.now(); begun < end && !signal.aborted; begun = performance.now()) {
      await run();
      times.push(performance.now() - begun);
    }
  }
  await Promise.all(Array.from({ length: connections }, worker));
  return times;
}

function summary(times: readonly number[], durationMs: number) {
  const sorted = times.toSorted((a, b) => a - b);
  const at = (share: number) =>
    round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0);
  return {
    calls: sorted.length,
    callsPerSecond: round((sorted.length * 1000) / durationMs),
    p50Ms: at(0.5),
    p90Ms: at(0.9),
    p99Ms: at(0.99),
    maxMs: at(1),
  };
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
