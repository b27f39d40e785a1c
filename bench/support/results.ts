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

/**
 * Writes the results of a benchmark to `.cache/bench/NAME.json`, with the commit, the version of Node and the processor.
 *
 * @returns the path of the file
 */
export function writeResults(name: string, results: object): string {
  const checkout = join(import.meta.dirname, "..", "..");
  const folder = join(checkout, ".cache", "bench");
  const commit = execFileSync("git", ["-C", checkout, "describe", "--always", "--dirty"], {
    encoding: "utf8",
  });
  const machine = { node: process.version, cpu: cpus()[0]?.model, cores: cpus().length };
  mkdirSync(folder, { recursive: true });
  const path = join(folder, `${name}.json`);
  const content = { commit: commit.trim(), date: new Date().toISOString(), ...machine, ...results };
  writeFileSync(path, `${JSON.stringify(content, undefined, 2)}\n`);
  return path;
}
