// A bucket that is some milliseconds away: for each operation the requests to the bucket, how many of them follow one
// another, the time of a call alone, and the rate of many connections. Compares the gateway with the Rust REST adapter
// of the pylance wheel, each on a catalog of its own behind a link of its own. The S3 server is versitygw.
import { parseArgs } from "node:util";
import { startS3 } from "../test/clients/support/store-servers.ts";
import { runCached } from "./bucket/cached.ts";
import { loadOf } from "./bucket/load.ts";
import { OPERATIONS, type Operation, prepareTables } from "./bucket/operations.ts";
import { SIDES, type Side, startBase, startSide } from "./bucket/sides.ts";
import { depthOf, kindsOf, type Trace, takeRequests, traceCall } from "./bucket/trace.ts";
import { type Figures, type FiguresInProgress, numberText, startFigures } from "./support/figures.ts";
import { type Rounds, roundsOf } from "./support/results.ts";

/** Number of traced calls; the one with the fewest requests is reported, because work in the background adds some. */
const TRACED = 3;
/** Number of calls, one after the other, whose median time is reported, and maximum duration in milliseconds. */
const ALONE = 20;
const ALONE_MS = 1_000;

/** Calls per second that {@link GOAL_CONNECTIONS} are to get. */
const GOALS: Readonly<Record<string, number>> = { describe: 2_000, exists: 2_000, list: 2_000, declare: 500 };
const GOAL_CONNECTIONS = 64;

interface Measured {
  readonly requests: number;
  readonly depth: number;
  readonly kinds: string;
  /** Requests in the background after the answer. */
  readonly after: string;
  readonly p50Ms: Rounds;
  readonly perSecond: Rounds;
  /** Number of requests for each call under load. */
  readonly requestsUnderLoad: number;
  /** Share of refused calls under load. */
  readonly refused: number;
}

/** The repeated measurements of an operation on a side. */
interface Repeated {
  readonly p50Ms: number[];
  readonly perSecond: number[];
  calls: number;
  refused: number;
  requests: number;
}

const USAGE = {
  tables: { type: "string", default: "100,10000" },
  delay: { type: "string", default: "20" },
  rounds: { type: "string", default: "5" },
  connections: { type: "string", default: "64" },
  only: { type: "string" },
  base: { type: "string" },
  sides: { type: "string", default: SIDES.map((_, index) => index).join(",") },
  cache: { type: "boolean", default: false },
  rows: { type: "string", default: "50000" },
} as const;

/**
 * Runs the comparison.
 *
 * Options: `--tables N,N`, `--delay MS`, `--rounds N` (0 counts requests alone), `--connections N`, `--only NAME,NAME`
 * of the operations or searches, `--sides N,N` of the servers, and `--base DIR`, a checkout whose gateway is measured, too. `--cache`
 * measures warm searches of a table of `--rows N` with and without the cache on disk instead.
 */
export async function run(args: readonly string[]): Promise<Figures[]> {
  const { values } = parseArgs({ args: [...args], options: USAGE });
  const listed = (text: string) => text.split(",");
  const names = listed(values.sides).map((index) => SIDES[Number(index)] ?? "");
  const [delayMs, rounds, connections] = [values.delay, values.rounds, values.connections].map(Number) as [
    number,
    number,
    number,
  ];
  const kinds = values.only === undefined ? undefined : listed(values.only);
  const store = await startS3();
  try {
    if (values.cache)
      return await runCached(store, { rows: Number(values.rows), kinds, delayMs, rounds, connections });
    const figures = startFigures(
      ...["tables", "call", "side", "requests", "in a row", "p50, ms", `${connections} connections, /s`],
      ...["requests under load", "refused, %"],
    );
    for (const tables of listed(values.tables).map(Number)) {
      const sides: Side[] = [];
      try {
        const world = { store, tables, delayMs };
        for (const name of names) sides.push(await startSide(name, world));
        if (values.base !== undefined) sides.push(await startBase(values.base, world));
        for (const { server } of sides) await prepareTables(server.port, connections);
        for (const operation of listed(values.only ?? Object.keys(OPERATIONS).join(","))) {
          const load = { rounds, connections };
          const measured = await measure(sides, tables, OPERATIONS[operation] as Operation, load);
          add(figures, { tables, operation, connections }, measured);
        }
      } finally {
        await Promise.all(sides.map((side) => side.stop()));
      }
    }
    return [figures];
  } finally {
    await store.close();
  }
}

interface Load {
  readonly rounds: number;
  readonly connections: number;
}

/** Measures an operation on all sides, round by round, so that noise of the machine affects all of them. */
async function measure(
  sides: readonly Side[],
  tables: number,
  operation: Operation,
  { rounds, connections }: Load,
): Promise<Record<string, Measured>> {
  const states = new Map<Side, { readonly trace: Trace; readonly found: Repeated }>();
  for (const side of sides) {
    const trace = await leastTrace(side.link.port, () => operation(side.server.port, tables, 0));
    states.set(side, { trace, found: { p50Ms: [], perSecond: [], calls: 0, refused: 0, requests: 0 } });
  }
  for (let round = 0; round < rounds; round += 1) {
    for (const [{ server, link }, { found }] of states) {
      found.p50Ms.push(await timeAlone(() => operation(server.port, tables, 0)));
      await takeRequests(link.port);
      const load = await loadOf(connections, (connection) => operation(server.port, tables, connection));
      found.perSecond.push(load.perSecond);
      found.calls += load.calls;
      found.refused += load.refused;
      found.requests += (await takeRequests(link.port)).length;
    }
  }
  const summaries = [...states].map(
    ([{ name }, { trace, found }]) => [name, summaryOf(trace, found)] as const,
  );
  return Object.fromEntries(summaries);
}

function summaryOf({ during, after }: Trace, found: Repeated): Measured {
  return {
    requests: during.length,
    depth: depthOf(during),
    kinds: kindsOf(during),
    after: kindsOf(after),
    p50Ms: roundsOf(found.p50Ms),
    perSecond: roundsOf(found.perSecond),
    requestsUnderLoad: found.requests / Math.max(1, found.calls),
    refused: found.refused / Math.max(1, found.calls),
  };
}

async function leastTrace(linkPort: number, call: () => Promise<unknown>): Promise<Trace> {
  const traces: Trace[] = [];
  for (let count = 0; count < TRACED; count += 1) traces.push(await traceCall(linkPort, call));
  traces.sort((a, b) => a.during.length - b.during.length);
  return traces[0] as Trace;
}

async function timeAlone(call: () => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (const end = performance.now() + ALONE_MS; times.length < ALONE && performance.now() < end; ) {
    const started = performance.now();
    await call();
    times.push(performance.now() - started);
  }
  return roundsOf(times).median;
}

function add(
  figures: FiguresInProgress,
  { tables, operation, connections }: { tables: number; operation: string; connections: number },
  measured: Readonly<Record<string, Measured>>,
): void {
  for (const [at, [side, found]] of Object.entries(measured).entries()) {
    const { requests, depth, kinds, after, p50Ms, perSecond, requestsUnderLoad, refused } = found;
    const isTimed = p50Ms.rounds.length > 0;
    const timed = isTimed ? [p50Ms, perSecond, requestsUnderLoad, refused * 100] : ["", "", "", ""];
    const least = at === 0 && connections === GOAL_CONNECTIONS && isTimed ? GOALS[operation] : undefined;
    const goals = least === undefined ? [] : [{ of: perSecond.median, least, unit: "/s" }];
    figures.add([numberText(tables), operation, side, requests, depth, ...timed], ...goals);
    const background = after === "" ? "" : `, then ${after}`;
    console.error(`${side}: ${kinds}${background}`);
  }
}
