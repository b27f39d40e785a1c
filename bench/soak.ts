// Mixed work on a table for some minutes, with upkeep and without it: four reads for a write, by many clients. Prints
// the rates of the first and the last minute, latencies, files, versions and memory, and writes them as JSON.
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { createDraw, createTable, drawWork } from "./soak/work.ts";
import { residentBytes } from "./support/memory.ts";
import { type ServerProcess, startGateway } from "./support/process.ts";
import { writeResults } from "./support/results.ts";

const MIB = 1024 * 1024;

/** Counts and times of a minute. */
interface Minute {
  readonly reads: number[];
  readonly writes: number[];
  /** Times of calls by their kind. */
  readonly kinds: Record<string, number[]>;
  failures: number;
  rss: number;
  files: number;
  versions: number;
}

/**
 * Runs the work. Options: --minutes N, --clients N, --upkeep on|off (default: both, one after the other),
 * --max-versions N and --history thinned|all (default: those of the gateway).
 */
export async function run(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      minutes: { type: "string", default: "10" },
      clients: { type: "string", default: "16" },
      upkeep: { type: "string", default: "on,off" },
      "max-versions": { type: "string" },
      history: { type: "string" },
    },
  });
  const { minutes, clients } = values;
  const bounds = Object.entries({
    "--table-max-versions": values["max-versions"],
    "--table-history": values.history,
  }).flatMap(([flag, value]) => (value === undefined ? [] : [flag, value]));
  const results: Record<string, object> = {};
  for (const upkeep of values.upkeep.split(",")) {
    results[upkeep] = await soak(["--table-upkeep", upkeep, ...bounds], Number(minutes), Number(clients));
  }
  console.log(`\nThe figures are in ${writeResults("soak", { minutes, clients, bounds, upkeep: results })}`);
}

async function soak(options: readonly string[], minutes: number, clients: number): Promise<object> {
  const root = await mkdtemp(join(tmpdir(), "lance-gateway-soak-"));
  const gateway = await startGateway("--root", root, ...options);
  try {
    await createTable(gateway.port);
    console.log(`\n${options.join(" ")}, ${clients} clients, ${minutes} minutes`);
    console.log(
      "  minute   reads/min  read p50   p99   max | writes/min  p50    p99 | failed  files versions  MiB",
    );
    const found: Minute[] = [];
    for (let minute = 1; minute <= minutes; minute += 1) {
      const figures = await workFor(60_000, gateway, clients, minute);
      Object.assign(figures, await countFiles(root));
      found.push(figures);
      print(minute, figures);
    }
    printRatio(found);
    return found.map(({ reads, writes, kinds, ...figures }) => ({
      ...figures,
      kinds: Object.fromEntries(Object.entries(kinds).map(([kind, times]) => [kind, quantiles(times)])),
      reads: { calls: reads.length, quantiles: quantiles(reads) },
      writes: { calls: writes.length, quantiles: quantiles(writes) },
    }));
  } finally {
    await gateway.stop();
    await rm(root, { recursive: true, force: true });
  }
}

async function workFor(
  ms: number,
  { port, pid }: ServerProcess,
  clients: number,
  seed: number,
): Promise<Minute> {
  const figures: Minute = { reads: [], writes: [], kinds: {}, failures: 0, rss: 0, files: 0, versions: 0 };
  const until = performance.now() + ms;
  const client = async (_: unknown, index: number) => {
    const draw = createDraw(seed * 1000 + index + 1);
    while (performance.now() < until) {
      const work = drawWork(draw);
      const started = performance.now();
      try {
        await work.run(port, draw);
      } catch (error) {
        if (figures.failures++ === 0) console.error(`  ${(error as Error).message}`);
      }
      const ms = performance.now() - started;
      (work.isWrite ? figures.writes : figures.reads).push(ms);
      figures.kinds[work.kind] ??= [];
      figures.kinds[work.kind]?.push(ms);
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  figures.rss = residentBytes(pid);
  return figures;
}

async function countFiles(root: string): Promise<Pick<Minute, "files" | "versions">> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  const versions = files.filter(
    ({ name, parentPath }) => name.endsWith(".manifest") && parentPath.includes("soak.lance"),
  );
  return { files: files.length, versions: versions.length };
}

function print(minute: number, { reads, writes, failures, files, versions, rss }: Minute): void {
  const [r50, r99, most] = quantiles(reads);
  const [w50, w99] = quantiles(writes);
  const line = [minute, reads.length, r50, r99, most, writes.length, w50, w99, failures, files, versions];
  console.log(
    `  ${line.map((value) => String(value).padStart(8)).join("")}${String(Math.round(rss / MIB)).padStart(6)}`,
  );
}

function printRatio(minutes: readonly Minute[]): void {
  const [first, last] = [minutes[0], minutes.at(-1)];
  if (first === undefined || last === undefined) return;
  const reads = last.reads.length / first.reads.length;
  const p99 = (quantiles(last.reads)[1] ?? 0) / (quantiles(first.reads)[1] ?? 1);
  console.log(`  last minute to first: reads ${reads.toFixed(2)}, p99 ${p99.toFixed(2)}`);
}

/** Returns the median, the 99th percentile and the maximum, in whole milliseconds. */
function quantiles(times: readonly number[]): number[] {
  const sorted = times.toSorted((a, b) => a - b);
  return [0.5, 0.99, 1].map((part) => Math.round(sorted[Math.ceil(sorted.length * part) - 1] ?? 0));
}
