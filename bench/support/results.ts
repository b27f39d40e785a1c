import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";

/** The rounds of a measured value. */
export interface Rounds {
  readonly median: number;
  readonly min: number;
  readonly max: number;
  readonly rounds: readonly number[];
}

/** Sums the rounds of a value up; of an even number, the median is the upper one of the two in the middle. */
export function roundsOf(values: readonly number[]): Rounds {
  const sorted = values.toSorted((a, b) => a - b);
  const median = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
  return { median, min: sorted[0] ?? Number.NaN, max: sorted.at(-1) ?? Number.NaN, rounds: values };
}

/** Returns the median of a value with its range, as a text. */
export function rangeText({ median, min, max }: Rounds): string {
  const [middle, low, high] = [median, min, max].map((value) => value.toFixed(1));
  return `${middle} (${low} to ${high})`;
}

const CHECKOUT = join(import.meta.dirname, "..", "..");

/** Where, when and with what a benchmark runs. */
export interface Origin {
  readonly commit: string;
  /** In the form of ISO 8601. */
  readonly date: string;
  readonly node: string;
  readonly cpu: string;
  readonly cores: number;
}

/** Returns the origin of results that are measured now. */
export function originOf(): Origin {
  const describe = ["-C", CHECKOUT, "describe", "--always", "--dirty"];
  const commit = execFileSync("git", describe, { encoding: "utf8" }).trim();
  const [cpu] = cpus();
  const date = new Date().toISOString();
  return { commit, date, node: process.version, cpu: cpu?.model ?? "", cores: cpus().length };
}

/**
 * Writes the results of a benchmark with their origin to `.cache/bench/NAME.json`.
 *
 * @returns the path of the file
 */
export function writeResults(name: string, results: object): string {
  return write(join(CHECKOUT, ".cache", "bench"), name, { ...originOf(), ...results });
}

/** Writes the results with their origin to `bench/results/NAME.json`, from which the tables of the documentation are made. */
export function keepResults(name: string, results: object): void {
  write(join(CHECKOUT, "bench", "results"), name, { origin: originOf(), ...results });
}

function write(folder: string, name: string, content: object): string {
  mkdirSync(folder, { recursive: true });
  const path = join(folder, `${name}.json`);
  writeFileSync(path, `${JSON.stringify(content, undefined, 2)}\n`);
  return path;
}
