import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";

/** The repeated measurements of a figure. */
export interface Figure {
  readonly median: number;
  readonly least: number;
  readonly most: number;
  readonly rounds: number;
}

/** Summarizes measurements; of an even number, the median is the upper one of the two in the middle. */
export function figureOf(values: readonly number[]): Figure {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (index: number) => sorted[index] ?? Number.NaN;
  return {
    median: at(Math.floor(sorted.length / 2)),
    least: at(0),
    most: at(sorted.length - 1),
    rounds: sorted.length,
  };
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
 * Writes the results of a benchmark to `.cache/bench/NAME.json`, with the commit, the version of Node and the processor.
 *
 * @returns the path of the file
 */
export function writeResults(name: string, results: object): string {
  const folder = join(CHECKOUT, ".cache", "bench");
  mkdirSync(folder, { recursive: true });
  const path = join(folder, `${name}.json`);
  writeFileSync(path, `${JSON.stringify({ ...originOf(), ...results }, undefined, 2)}\n`);
  return path;
}
