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
import { createDraw, createTable, type Draw, READS, rowsOf } from "./work.ts";

/** How the tables of a gateway are looked after. */
export interface Upkeep {
  readonly name: string;
  readonly options: readonly string[];
  /** How far the processes of a Ray head are below the priority of the gateway. Default: none runs. */
  readonly niceness?: number;
}

/** Compactions go to the cluster, and nothing else. */
const ON_RAY = ["--job-engine", "ray", "--job-engine-kinds", "compact_table", "--ray-workers", "2"] as const;

/** The kinds of upkeep: the first one is what the others are compared with. */
export const UPKEEPS: readonly [Upkeep, Upkeep, ...Upkeep[]] = [
  { name: "none", options: ["--table-upkeep", "off"] },
  { name: "in the gateway", options: [] },
  { name: "compactions on Ray", options: ON_RAY, niceness: 0 },
  { name: "compactions on Ray, nice", options: ON_RAY, niceness: 19 },
];

/** Calls at a steady rate: reads of a table with indices that nobody writes, and adds of rows to another one. */
export interface EngineLoad {
  readonly seconds: number;
  /** Rows of the table that is written, at the start. */
  readonly rows: number;
  /** Reads in a second, and adds. */
  readonly reads: number;
  readonly adds: number;
  /** Whether the table that is written has an index for each kind of read, which the gateway brings up to date itself. */
  readonly isIndexed: boolean;
}

/** Figures of a kind of upkeep. */
export interface EngineFigures {
  /** Times of calls, in milliseconds. */
  readonly reads: Latencies;
  readonly adds: Latencies;
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

/** Load that does not count, in which upkeep ends its work on the new tables and V8 compiles, in seconds. */
const WARM_SECONDS = 20;

/** Has a gateway serve a load beside upkeep. */
export async function measureEngine({ options, niceness }: Upkeep, load: EngineLoad): Promise<EngineFigures> {
  const root = await mkdtemp(join(tmpdir(), "lance-gateway-bench-"));
  const head = niceness === undefined ? undefined : await startRayHead(await rayInterpreter(), niceness);
  try {
    return await measure(root, head, options, load);
  } finally {
    await head?.close();
    await rm(root, { recursive: true, force: true });
  }
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
    const [reads, adds] = await runLoad(port, load);
    const after = { gateway: computedSeconds(pid), cluster: await clusterSeconds() };
    const read = await readMetrics(port);
    const joined = read(/^lance_gateway_upkeep_fragments_joined_total/);
    // Upkeep that does nothing costs nothing.
    if (head !== undefined && joined === 0) throw new Error("the cluster has joined no fragments");
    return {
      ...{ reads: latenciesOf(reads), adds: latenciesOf(adds) },
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
  { seconds, reads, adds, rows }: EngineLoad,
): Promise<readonly [reads: readonly Span[], adds: readonly Span[]]> {
  const [ofReads, ofAdds] = [createDraw(1), createDraw(91)];
  let next = rows;
  const read = (draw: Draw) => (READS[draw(READS.length)] as (typeof READS)[number]).run(port, draw);
  const add = (draw: Draw) => {
    const ids = Array.from({ length: ADD_ROWS }, () => next++);
    return send(port, "table/written/insert", rowsOf(ids, draw));
  };
  return Promise.all([
    runSteadily(reads, seconds, () => read(ofReads)),
    runSteadily(adds, seconds, () => add(ofAdds)),
  ]);
}

/** Makes calls at a rate, whatever they take; returns their spans. */
async function runSteadily(
  perSecond: number,
  seconds: number,
  call: () => Promise<unknown>,
): Promise<readonly Span[]> {
  const started = performance.now();
  const calls: Promise<Span>[] = [];
  for (let number = 0; number < perSecond * seconds; number++) {
    const early = started + (number * 1000) / perSecond - performance.now();
    if (early > 0) await sleep(early);
    // The gateway does not answer for a timer that is late.
    const from = performance.now();
    calls.push(call().then(() => ({ from, to: performance.now() })));
  }
  return Promise.all(calls);
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
