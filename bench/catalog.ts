// The catalog: compares the gateway with the Rust REST adapter of the pylance wheel, on equal roots and with equal
// requests, in turn. With --tables N it measures the gateway alone with that many tables, in addition to a root of
// 1,000. With --workers N the gateway has workers, each work has five rounds, and the figures go to bench/results.
import { execFileSync } from "node:child_process";
import { cp, mkdir, mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { pythonInterpreter } from "../scripts/python-environment.ts";
import { declare, declareOne, describe, exists, list, tableName, type Work } from "./catalog/work.ts";
import { send } from "./data/client.ts";
import { residentBytes } from "./support/memory.ts";
import { type ServerProcess, startGateway, startProcess } from "./support/process.ts";
import { compare, printStandings } from "./support/report.ts";
import { keepResults, type Rounds, roundsOf } from "./support/results.ts";

const ROOT_MAKER = join(import.meta.dirname, "catalog", "peer.py");
const ADAPTER = join(import.meta.dirname, "data", "peer.py");
const SECONDS = 3;
const ROUNDS = 3;
const SIZES = [2000, 100_000] as const;
const DECLARES = 2000;
const MIB = 1024 * 1024;

/** The measured work, and the goal at each of {@link SIZES} as a multiple of the adapter's rate. */
const WORK: readonly { title: string; work: Work; goals: readonly [number, number]; rounds: number }[] = [
  { title: "describe, 16 connections", work: describe, goals: [10, 50], rounds: ROUNDS },
  { title: "exists, 16 connections", work: exists, goals: [10, 50], rounds: ROUNDS },
  { title: "list a page of 100, 16 connections", work: list, goals: [10, 100], rounds: ROUNDS },
  { title: "declare, 1 connection", work: declare(1), goals: [1, 10], rounds: 2 },
  { title: "declare, 64 connections", work: declare(64), goals: [20, 100], rounds: 2 },
];

/** Rounds of each work with workers. */
const WORKER_ROUNDS = 5;
const WORKER_SECONDS = 2;

/** The rates of a work with workers, and the goal as a multiple of the adapter's. */
interface Compared {
  readonly tables: number;
  readonly title: string;
  readonly goal: number;
  readonly gateway: Rounds;
  readonly adapter: Rounds;
}

/** Runs the comparison, or with `--tables N` the gateway alone. */
export async function run(args: readonly string[]): Promise<void> {
  const options = { tables: { type: "string" }, workers: { type: "string" } } as const;
  const { values } = parseArgs({ args: [...args], options });
  const folder = await mkdtemp(join(tmpdir(), "lance-gateway-bench-"));
  try {
    if (values.tables !== undefined) {
      await runAlone(folder, Number(values.tables));
      return;
    }
    const compared: Compared[] = [];
    for (const [index, tables] of SIZES.entries()) {
      compared.push(...(await compareAt(folder, tables, index as 0 | 1, values.workers)));
    }
    if (values.workers === undefined) await printDisk(folder);
    else keepResults("catalog-workers", { workers: Number(values.workers), compared });
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

async function compareAt(
  folder: string,
  tables: number,
  index: 0 | 1,
  workers: string | undefined,
): Promise<Compared[]> {
  const compared: Compared[] = [];
  const given = workers === undefined ? [] : ["--workers", workers];
  const time = workers === undefined ? SECONDS : WORKER_SECONDS;
  const root = await makeRoot(folder, tables);
  await cp(root, `${root}-adapter`, { recursive: true });
  const gateway = await startGateway("--root", root, ...given);
  const adapter = await startProcess([pythonInterpreter(), ADAPTER, "serve", `${root}-adapter`], /^(\d+)$/);
  try {
    for (const { port } of [gateway, adapter]) await send(port, `table/bench$${tableName(0)}/describe`, {});
    for (const { title, work, goals, rounds } of WORK) {
      const standings = await compare(workers === undefined ? rounds : WORKER_ROUNDS, [
        { name: "gateway", run: () => work(gateway.port, tables, time) },
        { name: "Rust REST adapter", run: () => work(adapter.port, tables, time) },
      ]);
      const [ours = Number.NaN, theirs = Number.NaN] = standings.map(({ rate }) => rate);
      printStandings(`${tables.toLocaleString("en")} tables: ${title}`, "/s", standings);
      const goal = goals[index];
      console.log(`  goal ${goal} ×: ${ours / theirs >= goal ? "reached" : "MISSED"}`);
      const [own = [], others = []] = standings.map((standing) => standing.rounds.map(Math.round));
      compared.push({ tables, title, goal, gateway: roundsOf(own), adapter: roundsOf(others) });
    }
    return compared;
  } finally {
    await Promise.all([gateway.stop(), adapter.stop()]);
  }
}

/** Time after which the manifest is tidy, in milliseconds: its readers keep old versions for 15 s. */
const SETTLED_MS = 25_000;

/** Prints the size of the manifest after many commits, once the gateway has been idle for a while. */
async function printDisk(folder: string): Promise<void> {
  const root = await makeRoot(folder, 1);
  const before = await bytesIn(join(root, "__manifest"));
  const gateway = await startGateway("--root", root);
  try {
    for (let count = 0; count < DECLARES; count += 1) await declareOne(gateway.port);
    await sleep(SETTLED_MS);
    const left = (await bytesIn(join(root, "__manifest"))) - before;
    console.log(
      `\n${DECLARES} declares, one after the other, left ${(left / 1e6).toFixed(1)} MB (goal: 5 MB)`,
    );
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

interface Loaded {
  readonly tables: number;
  readonly server: ServerProcess;
}

async function runAlone(folder: string, tables: number): Promise<void> {
  const servers: Loaded[] = [];
  try {
    for (const count of [1000, tables]) {
      const root = await makeRoot(folder, count);
      const started = performance.now();
      const server = await startGateway("--root", root);
      const listening = performance.now();
      await send(server.port, `table/bench$${tableName(count - 1)}/describe`, {});
      const loaded = performance.now();
      console.log(
        `${count.toLocaleString("en")} tables: listens after ${seconds(listening - started)} s, ` +
          `first answer ${seconds(loaded - listening)} s later, ${mib(server)} MiB resident`,
      );
      servers.push({ tables: count, server });
    }
    for (const [title, work] of [
      ["describe", describe],
      ["exists", exists],
      ["list a page of 100", list],
    ] as const) {
      const standings = await compare(
        ROUNDS,
        servers.toReversed().map(({ tables: count, server }) => ({
          name: `${count.toLocaleString("en")} tables`,
          run: () => work(server.port, count, SECONDS),
        })),
      );
      printStandings(`${title}, 16 connections`, "/s", standings);
    }
    for (const { tables: count, server } of servers) {
      console.log(`${count.toLocaleString("en")} tables: ${mib(server)} MiB resident after the load`);
    }
  } finally {
    await Promise.all(servers.map(({ server }) => server.stop()));
  }
}

function seconds(ms: number): string {
  return (ms / 1000).toFixed(2);
}

function mib({ pid }: ServerProcess): number {
  return Math.round(residentBytes(pid) / MIB);
}
