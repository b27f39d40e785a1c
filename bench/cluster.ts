// On paper: the time of a build of IVF_PQ over 100 million vectors on a cluster, from the measured computing of its parts.
// npm run bench -- cluster [--rows N] [--trained N,N,…] [--target ROWS] [--workers N,N,…]
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs, promisify } from "node:util";
import { pythonInterpreter } from "../scripts/python-environment.ts";
import { writeResults } from "./support/results.ts";

const OPTIONS = {
  rows: { type: "string", default: "262144" },
  trained: { type: "string", default: "512,1024" },
  target: { type: "string", default: "100000000" },
  workers: { type: "string", default: "1,4,16" },
} as const;

const PEER = join(import.meta.dirname, "cluster", "peer.py");

/** Computing of the parts of a build, in seconds of one core. */
interface Parts {
  /** Of the centroids, by the driver: growing numbers of partitions. */
  readonly training: readonly { readonly partitions: number; readonly seconds: number }[];
  /** Of the codes' books, by the driver. */
  readonly books: number;
  /** Partition and code of a row, by the workers. */
  readonly row: number;
}

/** Measures the parts, prints tables in Markdown and writes the figures as JSON. */
export async function run(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({ args: [...args], options: OPTIONS });
  const target = Number(values.target);
  // The default of the cluster's builds.
  const partitions = Math.round(Math.sqrt(target));
  const parts = await measure(values.rows, values.trained, String(partitions));
  console.log("| Part | seconds of one core |\n| --- | --- |");
  for (const { partitions, seconds } of parts.training)
    console.log(`| ${partitions} centroids | ${seconds.toFixed(1)} |`);
  const centroids = extrapolate(parts, partitions);
  console.log(`| ${partitions} centroids, computed from these | ${centroids.toFixed(0)} |`);
  console.log(`| books of the codes | ${parts.books.toFixed(1)} |`);
  console.log(`| a million rows in ${partitions} partitions | ${(parts.row * 1e6).toFixed(1)} |`);
  console.log(`\n| Workers of one core | training | ${target} rows | together |\n| --- | --- | --- | --- |`);
  const training = centroids + parts.books;
  for (const workers of values.workers.split(",").map(Number)) {
    const spread = (target * parts.row) / workers;
    console.log(`| ${[workers, ...[training, spread, training + spread].map(hours)].join(" | ")} |`);
  }
  console.log(`\nThe figures are in ${writeResults("cluster", { ...parts, target, partitions, centroids })}`);
}

async function measure(...wanted: readonly string[]): Promise<Parts> {
  const folder = await mkdtemp(join(tmpdir(), "lance-gateway-bench-"));
  try {
    const { stdout } = await promisify(execFile)(pythonInterpreter("ray"), [PEER, folder, ...wanted]);
    return JSON.parse(stdout);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * Goes on with the power with which the time grew between the last two measured numbers of partitions. Beyond 256, the engine trains
 * centroids in a tree.
 */
function extrapolate({ training }: Parts, partitions: number): number {
  const [from, to] = training.slice(-2) as [Parts["training"][number], Parts["training"][number]];
  const power = Math.log(to.seconds / from.seconds) / Math.log(to.partitions / from.partitions);
  return to.seconds * (partitions / to.partitions) ** power;
}

function hours(seconds: number): string {
  return `${(seconds / 3600).toFixed(1)} h`;
}
