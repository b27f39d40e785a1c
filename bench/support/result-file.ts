import { execFileSync } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { cpus } from "node:os";
import { join } from "node:path";

/** The rounds of a measured value. */
export interface Rounds {
  readonly median: number;
  readonly min: number;
  readonly max: number;
  readonly rounds: readonly number[];
}

/** Where and with what a benchmark ran. */
export interface Origin {
  readonly commit: string;
  readonly node: string;
  readonly cpu: string;
  readonly cores: number;
}

/** Sums the rounds of a value up. */
export function roundsOf(values: readonly number[]): Rounds {
  const sorted = values.toSorted((a, b) => a - b);
  const median = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
  return { median, min: sorted[0] ?? Number.NaN, max: sorted.at(-1) ?? Number.NaN, rounds: values };
}

/** Writes the result of a benchmark to `bench/results`, with its origin. */
export async function writeResult(name: string, result: object): Promise<void> {
  const folder = join(import.meta.dirname, "..", "results");
  await mkdir(folder, { recursive: true });
  const [cpu] = cpus();
  const origin: Origin = {
    commit: execFileSync("git", ["rev-parse", "--short", "HEAD"], { encoding: "utf8" }).trim(),
    node: process.version,
    cpu: cpu?.model ?? "",
    cores: cpus().length,
  };
  await writeFile(join(folder, `${name}.json`), `${JSON.stringify({ origin, ...result }, undefined, 2)}\n`);
}
