// Work on rows: compares the gateway with the Rust REST adapter of the pylance wheel, on equal roots and with equal
// requests, in turn. Then it sends bodies of a gibibyte to the gateway alone and measures the memory of its process; --no-large leaves that out.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { pythonInterpreter } from "../scripts/python-environment.ts";
import { send } from "./data/client.ts";
import { compare } from "./support/compare.ts";
import { type Figures, type FiguresInProgress, startFigures } from "./support/figures.ts";
import { runHttpLoad } from "./support/http-load.ts";
import { watchMemory } from "./support/memory.ts";
import { type ServerProcess, startGateway, startProcess } from "./support/process.ts";
import { timesOf } from "./support/results.ts";

const PEER = join(import.meta.dirname, "data", "peer.py");
const USAGE = {
  rounds: { type: "string", default: "3" },
  seconds: { type: "string", default: "3" },
  /** Leaves out the bodies of a gibibyte. */
  "no-large": { type: "boolean", default: false },
} as const;
const MIB = 1024 * 1024;

/** The dimensions of the vectors, as in peer.py. */
const DIMENSIONS = 128;

/** Number of inserts into the table of the reads; together they are about 50 MB. */
const INSERTS = 26;

/** Runs the comparison: `[--rounds NUMBER] [--seconds NUMBER] [--no-large]`. */
export async function run(args: readonly string[]): Promise<Figures[]> {
  const { values } = parseArgs({ args: [...args], options: USAGE });
  const folder = await mkdtemp(join(tmpdir(), "lance-gateway-bench-"));
  try {
    execFileSync(pythonInterpreter(), [PEER, "bodies", folder]);
    const compared = await compareWithAdapter(folder, Number(values.rounds), Number(values.seconds));
    return [compared, ...(values["no-large"] ? [] : await runAlone(folder))];
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function compareWithAdapter(folder: string, rounds: number, seconds: number): Promise<Figures> {
  const small = readFileSync(join(folder, "small.arrows"));
  const roots = [join(folder, "gateway"), join(folder, "adapter")] as const;
  for (const root of roots) await mkdir(root);
  const gateway = await startGateway("--root", roots[0]);
  const adapter = await startProcess([pythonInterpreter(), PEER, "serve", roots[1]], /^(\d+)$/);
  const figures = startFigures("work", "unit", "gateway", "adapter", "gateway, ×");
  const side = async (
    title: string,
    unit: string,
    least: number,
    work: (server: ServerProcess) => Promise<number>,
  ) => {
    const sides = { own: () => work(gateway), peer: () => work(adapter) };
    const { own, peer } = await compare(rounds, sides);
    if (own === undefined || peer === undefined) throw new Error(`${title} was not measured`);
    const times = timesOf(own, peer).median;
    figures.add([title, unit, own, peer, times], { of: times, least, unit: "×" });
  };
  try {
    for (const { port } of [gateway, adapter]) {
      await send(port, "namespace/bench/create", {});
      for (const name of ["few", "rows"]) await send(port, `table/bench$${name}/create`, small);
      for (let count = 1; count < INSERTS; count += 1) await send(port, "table/bench$rows/insert", small);
    }
    await side("create a table of 2 MB, 1 connection", "/s", 1, ({ port }) =>
      perSecond(seconds, () => send(port, `table/${newName()}/create`, small)),
    );
    await side("insert 2 MB, 1 connection", "/s", 1, async ({ port }) => {
      const name = newName();
      await send(port, `table/${name}/create`, small);
      return perSecond(seconds, () => send(port, `table/${name}/insert`, small));
    });
    const load = (path: string, body: Record<string, unknown>) => (server: ServerProcess) =>
      runHttpLoad({
        port: server.port,
        method: "POST",
        path: `/v1/table/bench$${path}`,
        body: JSON.stringify(body),
        connections: 16,
        seconds,
      });
    await side("count the rows of 50 MB, 16 connections", "/s", 5, load("rows/count_rows", {}));
    const filtered = { filter: "id = 777", k: 10, vector: {} };
    await side("filter 2 MB, 16 connections", "/s", 1.5, load("few/query", filtered));
    const vector = { single_vector: Array.from({ length: DIMENSIONS }, (_, i) => (i % 10) / 10) };
    await side("nearest 10 in 2 MB, 16 connections", "/s", 1.5, load("few/query", { k: 10, vector }));
    await side("scan of 50 MB, 1 connection", "MB/s", 2, ({ port }) => scanRate(port, seconds));
    return figures;
  } finally {
    await Promise.all([gateway.stop(), adapter.stop()]);
  }
}

let tables = 0;

function newName(): string {
  tables += 1;
  return `bench$t${tables}`;
}

/** Measures the rate of sequential work, per second. */
async function perSecond(seconds: number, work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  let count = 0;
  for (; performance.now() - started < seconds * 1000; count += 1) await work();
  return (count * 1000) / (performance.now() - started);
}

async function scanRate(port: number, seconds: number): Promise<number> {
  let bytes = 0;
  const rate = await perSecond(seconds, async () => {
    ({ bytes } = await send(port, "table/bench$rows/query", { k: 10_000_000, vector: {} }));
  });
  return (rate * bytes) / 1e6;
}

async function runAlone(folder: string): Promise<Figures[]> {
  const body = join(folder, "large.arrows");
  const gateway = await startGateway("--root", join(folder, "large"));
  const bodies = startFigures("a body of 1 GiB", "s", "first byte after, ms", "memory grows by at most, MiB");
  const measured = async (title: string, path: string, content: Record<string, unknown> | string) => {
    const memory = watchMemory(gateway.pid);
    const { firstByteMs, ms } = await send(gateway.port, path, content);
    bodies.add([title, ms / 1000, Math.round(firstByteMs), Math.round(memory.end() / MIB)]);
  };
  try {
    // This loads the engine and compiles the code before the measurements.
    await send(gateway.port, "table/warm/create", readFileSync(join(folder, "small.arrows")));
    await send(gateway.port, "table/warm/query", { k: 10, vector: {} });
    await measured("create", "table/large/create", body);
    await measured("insert", "table/large/insert", body);
    await measured("query", "table/large/query", {
      k: (2 ** 30 / (8 + 22 + DIMENSIONS * 4)) | 0,
      vector: {},
    });
    const latencies = startFigures("one after the other", "beside", "p50, ms", "p99, ms", "calls");
    await addLatencies(latencies, "nothing", gateway.port);
    const busy = { ended: false };
    const scan = async () => {
      while (!busy.ended) await send(gateway.port, "table/large/query", { k: 500_000, vector: {} });
    };
    const index = { column: "vector", index_type: "IVF_PQ", distance_type: "l2" };
    const work = [send(gateway.port, "table/large/create_index", index), ...[1, 2, 3, 4].map(scan)];
    await addLatencies(latencies, "4 scans and an index build", gateway.port);
    busy.ended = true;
    await Promise.all(work);
    return [bodies, latencies];
  } finally {
    await gateway.stop();
  }
}

/** Time for which each kind of call is made, in seconds. */
const LATENCY_SECONDS = 3;

async function addLatencies(figures: FiguresInProgress, beside: string, port: number): Promise<void> {
  const calls = {
    describe: () => send(port, "table/large/describe", {}),
    list: () => send(port, "namespace/$/table/list"),
  };
  for (const [name, call] of Object.entries(calls)) {
    const times: number[] = [];
    await perSecond(LATENCY_SECONDS, async () => {
      times.push((await call()).ms);
    });
    times.sort((a, b) => a - b);
    const [p50, p99] = [0.5, 0.99].map((part) => times[Math.floor(times.length * part)] ?? Number.NaN);
    figures.add([name, beside, p50 ?? Number.NaN, p99 ?? Number.NaN, times.length]);
  }
}
