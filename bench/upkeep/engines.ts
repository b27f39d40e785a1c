import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type RayHead, rayInterpreter, startRayHead } from "../../test/engines/ray-head.ts";
import { freePort } from "../../test/support/free-port.ts";
import { send } from "../data/client.ts";
import { computedSeconds, ownSeconds } from "../support/cpu.ts";
import { startGateway } from "../support/process.ts";
import { type Latencies, latenciesOf, readMetrics, type Span } from "./beside.ts";
import { createDraw, createTable, type Draw, READS, rowsOf, wordOf } from "./work.ts";

/** How the tables of a gateway are looked after. */
export interface Upkeep {
  readonly name: string;
  readonly options: readonly string[];
  /** The process that works on the other processor. Default: nothing. */
  readonly beside?: "program" | "cluster";
}

/** Compactions go to the cluster, and nothing else. */
const ON_RAY = ["--job-engine", "ray", "--job-engine-kinds", "compact_table", "--ray-workers", "2"] as const;

/**
 * The kinds of upkeep. The others are compared with the first one: no upkeep in the gateway, whose calls nevertheless find a
 * table with few fragments. Without any upkeep, its calls cost more than upkeep does.
 */
export const UPKEEPS: readonly [Upkeep, Upkeep, Upkeep] = [
  { name: "none, another program compacts", options: ["--table-upkeep", "off"], beside: "program" },
  { name: "in the gateway", options: [] },
  { name: "compactions on Ray", options: ON_RAY, beside: "cluster" },
];

/** Processors of the gateway with its clients, and of the cluster, which is another machine where people have one. */
const [GATEWAY_CPU, CLUSTER_CPU] = [0, 1] as const;

/** Pause of the other program between two compactions, in seconds: the gateway compacts this table about as often. */
const PROGRAM_PAUSE = 8;

/** Has this process, and those that it starts, use the processor of the gateway alone. */
export function useGatewayCpu(): void {
  execFileSync("taskset", ["--all-tasks", "--cpu-list", "--pid", `${GATEWAY_CPU}`, `${process.pid}`]);
}

/**
 * Calls at a steady rate: reads of a table with indices that nobody writes, and writes of another one. An update changes
 * one in a hundred of its rows, so that after ten of them upkeep rewrites all its files.
 */
export interface EngineLoad {
  readonly seconds: number;
  /** Rows of the table that is written, at the start. */
  readonly rows: number;
  /** Reads in a second, adds, and updates. */
  readonly reads: number;
  readonly adds: number;
  readonly updates: number;
  /** Whether the table that is written has an index for each kind of read, which the gateway brings up to date itself. */
  readonly isIndexed: boolean;
}

/** Figures of a kind of upkeep. */
export interface EngineFigures {
  /** Times of calls, in milliseconds. */
  readonly reads: Latencies;
  readonly adds: Latencies;
  /** Calls that failed, for example an update that met too many compactions of another program. */
  readonly failed: number;
  /** Computing of the gateway, and of everything that the head runs, in seconds. */
  readonly gatewaySeconds: number;
  readonly clusterSeconds: number;
  /** Runs of upkeep, and fragments that they have joined. */
  readonly runs: number;
  readonly joined: number;
  /** Fragments of the table at the end. */
  readonly fragments: number;
}

/** Rows that are put at a time into the table that is written, and in an add. */
const PART_ROWS = 20_000;
const ADD_ROWS = 5;

/** The share of an update: one row in so many. */
const UPDATED_ONE_IN = 100;

/** Load that does not count, in which upkeep ends its work on the new tables and V8 compiles, in seconds. */
const WARM_SECONDS = 20;

/** Has a gateway serve a load beside upkeep. */
export async function measureEngine({ options, beside }: Upkeep, load: EngineLoad): Promise<EngineFigures> {
  const root = await mkdtemp(join(tmpdir(), "lance-gateway-bench-"));
  const python = await rayInterpreter();
  const head = beside === "cluster" ? await startRayHead(python, CLUSTER_CPU) : undefined;
  const program = beside === "program" ? startProgram(python, root) : undefined;
  try {
    return await measure(root, head, options, load);
  } finally {
    program?.kill();
    await head?.close();
    await rm(root, { recursive: true, force: true });
  }
}

function startProgram(python: string, root: string): ChildProcess {
  const args = [
    join(import.meta.dirname, "compact.py"),
    join(root, "data", "written.lance"),
    `${PROGRAM_PAUSE}`,
  ];
  return spawn("taskset", ["--cpu-list", `${CLUSTER_CPU}`, python, ...args], { stdio: "ignore" });
}

async function measure(
  root: string,
  head: RayHead | undefined,
  options: readonly string[],
  load: EngineLoad,
): Promise<EngineFigures> {
  const { rows } = load;
  // The drivers call the gateway at the port of its options.
  const own = head && ["--port", `${await freePort()}`];
  const cluster = head && ["--ray-address", head.address, "--ray-token-file", head.tokenFile];
  const least = head && ["--job-engine-min-rows", String(rows)];
  const gateway = await startGateway(
    "--root",
    root,
    ...options,
    ...(own ?? []),
    ...(cluster ?? []),
    ...(least ?? []),
  );
  const { port, pid } = gateway;
  try {
    await createTable(port);
    await createWritten(port, load);
    await runLoad(port, { ...load, seconds: WARM_SECONDS });
    const clusterSeconds = async () =>
      ((await head?.processes()) ?? []).reduce((sum, process) => sum + secondsOf(process), 0);
    const before = { gateway: computedSeconds(pid), cluster: await clusterSeconds() };
    const [reads, adds, updates] = await runLoad(port, load);
    const after = { gateway: computedSeconds(pid), cluster: await clusterSeconds() };
    const read = await readMetrics(port);
    const joined = read(/^lance_gateway_upkeep_fragments_joined_total/);
    // Upkeep that does nothing costs nothing.
    if (head !== undefined && joined === 0) throw new Error("the cluster has joined no fragments");
    return {
      ...{ reads: latenciesOf(reads), adds: latenciesOf(adds) },
      failed:
        Math.round(load.seconds * (load.reads + load.adds + load.updates)) -
        [reads, adds, updates].flat().length,
      gatewaySeconds: after.gateway - before.gateway,
      clusterSeconds: after.cluster - before.cluster,
      runs: read(/^lance_gateway_upkeep_runs_total\{.*outcome="done"/),
      joined,
      fragments: await countFragments(port),
    };
  } finally {
    await gateway.stop();
  }
}

/** Returns the computing of a process of the head with its former children, in seconds; 0 if it has just ended. */
function secondsOf(pid: number): number {
  try {
    return ownSeconds(pid);
  } catch {
    return 0;
  }
}

async function createWritten(port: number, { rows, isIndexed }: EngineLoad): Promise<void> {
  // Equal parts cost as much as others, and are made once.
  const part = rowsOf(
    Array.from({ length: PART_ROWS }, (_, id) => id),
    createDraw(11),
  );
  for (let from = 0; from < rows; from += PART_ROWS)
    await send(port, `table/written/${from === 0 ? "create" : "insert"}`, part);
  if (!isIndexed) return;
  const indices = [
    { column: "id", index_type: "BTREE" },
    { column: "text", index_type: "FTS" },
    { column: "vector", index_type: "IVF_FLAT", distance_type: "l2" },
  ];
  for (const index of indices) await send(port, "table/written/create_index", index);
}

/** Sends the calls; returns their spans. */
function runLoad(
  port: number,
  { seconds, reads, adds, updates, rows }: EngineLoad,
): Promise<readonly [reads: readonly Span[], adds: readonly Span[], updates: readonly Span[]]> {
  const [ofReads, ofAdds, ofUpdates] = [createDraw(1), createDraw(91), createDraw(181)];
  let next = rows;
  let updated = 0;
  const read = (draw: Draw) => (READS[draw(READS.length)] as (typeof READS)[number]).run(port, draw);
  const add = (draw: Draw) => {
    const ids = Array.from({ length: ADD_ROWS }, () => next++);
    return send(port, "table/written/insert", rowsOf(ids, draw));
  };
  const update = (draw: Draw) =>
    send(port, "table/written/update", {
      predicate: `id % ${UPDATED_ONE_IN} = ${updated++ % UPDATED_ONE_IN}`,
      updates: [["text", `'${wordOf(draw)}'`]],
    });
  return Promise.all([
    runSteadily(reads, seconds, () => read(ofReads)),
    runSteadily(adds, seconds, () => add(ofAdds)),
    runSteadily(updates, seconds, () => update(ofUpdates)),
  ]);
}

/** Makes calls at a rate, whatever they take; returns their spans. */
async function runSteadily(
  perSecond: number,
  seconds: number,
  call: () => Promise<unknown>,
): Promise<readonly Span[]> {
  const started = performance.now();
  const calls: Promise<Span | undefined>[] = [];
  for (let number = 0; number < perSecond * seconds; number++) {
    const early = started + (number * 1000) / perSecond - performance.now();
    if (early > 0) await sleep(early);
    // The gateway does not answer for a timer that is late.
    const from = performance.now();
    const failed = (error: unknown) => void console.error(error);
    calls.push(call().then(() => ({ from, to: performance.now() }), failed));
  }
  return (await Promise.all(calls)).filter((span) => span !== undefined);
}

async function countFragments(port: number): Promise<number> {
  const answer = await fetch(`http://127.0.0.1:${port}/v1/table/written/stats`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: "{}",
  });
  const { fragment_stats: found } = (await answer.json()) as { fragment_stats: { num_fragments: number } };
  return found.num_fragments;
}
