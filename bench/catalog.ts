// The catalog: compares the gateway with the Rust REST adapter of the pylance wheel, on equal roots and with equal
// requests, in turn. With --tables N it measures the gateway alone with that many tables, in addition to a root of
// 1,000. With --workers N a gateway with workers takes part, too.
import { execFileSync } from "node:child_process";
import { cp, mkdir, mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { pythonInterpreter } from "../scripts/python-environment.ts";
import { declare, declareOne, describe, exists, list, tableName, type Work } from "./catalog/work.ts";
import { send } from "./data/client.ts";
import { compare } from "./support/compare.ts";
import { type Figures, type FiguresInProgress, numberText, startFigures } from "./support/figures.ts";
import { residentBytes } from "./support/memory.ts";
import { type ServerProcess, startGateway, startProcess } from "./support/process.ts";
import { timesOf } from "./support/results.ts";

const ROOT_MAKER = join(import.meta.dirname, "catalog", "peer.py");
const ADAPTER = join(import.meta.dirname, "data", "peer.py");
const SIZES = [2000, 100_000] as const;
const DECLARES = 2000;
const MIB = 1024 * 1024;
const WARM_SECONDS = 4;

const OPTIONS = {
  /** Measures the gateway alone with as many tables. */
  tables: { type: "string" },
  workers: { type: "string" },
  rounds: { type: "string", default: "3" },
  seconds: { type: "string", default: "3" },
  /** Leaves out the size of the manifest after many declares. */
  "no-disk": { type: "boolean", default: false },
} as const;

/** The measured work, and the goal at each of {@link SIZES} as a multiple of the adapter's rate. */
const WORK: readonly { title: string; work: Work; goals: readonly [number, number] }[] = [
  { title: "describe, 16 connections", work: describe, goals: [10, 50] },
  { title: "exists, 16 connections", work: exists, goals: [10, 50] },
  { title: "list a page of 100, 16 connections", work: list, goals: [10, 100] },
  { title: "declare, 1 connection", work: declare(1), goals: [1, 10] },
  { title: "declare, 64 connections", work: declare(64), goals: [20, 100] },
];

interface Length {
  readonly rounds: number;
  readonly seconds: number;
}

/** Runs the comparison, or with `--tables N` the gateway alone: `[--workers N] [--rounds N] [--seconds N] [--no-disk]`. */
export async function run(args: readonly string[]): Promise<Figures[]> {
  const { values } = parseArgs({ args: [...args], options: OPTIONS });
  const length = { rounds: Number(values.rounds), seconds: Number(values.seconds) };
  const folder = await mkdtemp(join(tmpdir(), "lance-gateway-bench-"));
  try {
    if (values.tables !== undefined) return await runAlone(folder, Number(values.tables), length);
    const { workers } = values;
    const sides = workers === undefined ? [] : [`${workers} workers, /s`, `${workers} workers, ×`];
    const heads = ["tables", "work", "gateway, /s", "adapter, /s", "gateway, ×", ...sides];
    const figures = startFigures(...heads);
    for (const [index, tables] of SIZES.entries())
      await compareAt(figures, { folder, tables, goalAt: index as 0 | 1, workers, ...length });
    return [figures, ...(values["no-disk"] ? [] : [await measureDisk(folder)])];
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function makeRoot(folder: string, tables: number): Promise<string> {
  const root = join(folder, String(tables));
  await mkdir(root);
  execFileSync(pythonInterpreter(), [ROOT_MAKER, "root", root, String(tables)]);
  return root;
}

interface Comparison extends Length {
  readonly folder: string;
  readonly tables: number;
  readonly goalAt: 0 | 1;
  readonly workers: string | undefined;
}

async function compareAt(
  figures: FiguresInProgress,
  { folder, tables, goalAt, workers, rounds, seconds }: Comparison,
): Promise<void> {
  const root = await makeRoot(folder, tables);
  const copies = ["adapter", ...(workers === undefined ? [] : ["workers"])];
  for (const name of copies) await cp(root, `${root}-${name}`, { recursive: true });
  const gateway = await startGateway("--root", root);
  const adapter = await startProcess([pythonInterpreter(), ADAPTER, "serve", `${root}-adapter`], /^(\d+)$/);
  const servers: Record<string, ServerProcess> = { gateway, adapter };
  if (workers !== undefined)
    servers["workers"] = await startGateway("--root", `${root}-workers`, "--workers", workers);
  try {
    for (const { port } of Object.values(servers))
      await send(port, `table/bench$${tableName(0)}/describe`, {});
    // V8 compiles for the first 60,000 calls or so.
    for (const [name, { port }] of Object.entries(servers))
      if (name !== "adapter") await describe(port, tables, WARM_SECONDS);
    for (const { title, work, goals } of WORK) {
      const sides = Object.entries(servers).map(([name, { port }]) => [
        name,
        () => work(port, tables, seconds),
      ]);
      const rates = await compare(rounds, Object.fromEntries(sides));
      const { gateway: own, adapter: peer, workers: many } = rates;
      if (own === undefined || peer === undefined) throw new Error(`${title} was not measured`);
      const times = timesOf(own, peer).median;
      const withWorkers = many === undefined ? [] : [many, timesOf(many, peer).median];
      const goal = { of: times, least: goals[goalAt], unit: "×" };
      figures.add([numberText(tables), title, own, peer, times, ...withWorkers], goal);
    }
  } finally {
    await Promise.all(Object.values(servers).map((server) => server.stop()));
  }
}

/** Time after which the manifest is tidy, in milliseconds: its readers keep old versions for 15 s. */
const SETTLED_MS = 25_000;

/** Measures the size of the manifest after many commits, once the gateway has been idle for a while. */
async function measureDisk(folder: string): Promise<Figures> {
  const root = await makeRoot(folder, 1);
  const before = await bytesIn(join(root, "__manifest"));
  const gateway = await startGateway("--root", root);
  try {
    for (let count = 0; count < DECLARES; count += 1) await declareOne(gateway.port);
    await sleep(SETTLED_MS);
    const left = (await bytesIn(join(root, "__manifest"))) - before;
    const figures = startFigures("declares, one after the other", "left in the manifest, MB");
    figures.add([numberText(DECLARES), left / 1e6], { of: left / 1e6, most: 5, unit: "MB" });
    return figures;
  } finally {
    await gateway.stop();
  }
}

async function bytesIn(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  // The gateway may clean a file up between the listing and this call.
  const sizes = files.map((file) =>
    stat(join(file.parentPath, file.name)).then(
      (found) => found.size,
      () => 0,
    ),
  );
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}

async function runAlone(folder: string, tables: number, { rounds, seconds }: Length): Promise<Figures[]> {
  const servers: ServerProcess[] = [];
  const sizes = [1000, tables];
  const starts = startFigures("tables", "listens after, s", "first answer later, s", "resident, MiB");
  const rates = startFigures(
    "calls/s, 16 connections",
    ...sizes.map((size) => `${numberText(size)} tables`),
    "×",
  );
  try {
    for (const count of sizes) {
      const root = await makeRoot(folder, count);
      const started = performance.now();
      const server = await startGateway("--root", root);
      servers.push(server);
      const listening = performance.now();
      await send(server.port, `table/bench$${tableName(count - 1)}/describe`, {});
      const answered = performance.now();
      const times = [listening - started, answered - listening].map((ms) => ms / 1000);
      starts.add([numberText(count), ...times, residentBytes(server.pid) / MIB]);
    }
    const works = { describe, exists, "list a page of 100": list };
    for (const [title, work] of Object.entries(works)) {
      const sides = servers.map(({ port }, at) => [at, () => work(port, sizes[at] ?? 0, seconds)]);
      const [few, many] = Object.values(await compare(rounds, Object.fromEntries(sides)));
      if (few === undefined || many === undefined) throw new Error(`${title} was not measured`);
      const times = timesOf(many, few).median;
      rates.add([title, few, many, times], { of: times, least: 0.8, unit: "×" });
    }
    return [starts, rates];
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
  }
}
