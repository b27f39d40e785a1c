import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
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

/** Returns how many times the values of another one a value has, round by round. */
export function timesOf({ rounds }: Rounds, other: Rounds): Rounds {
  return roundsOf(rounds.map((value, round) => value / (other.rounds[round] ?? Number.NaN)));
}

/** Returns the median of a value with its range, as a text. */
export function rangeText({ median, min, max }: Rounds): string {
  const [middle, low, high] = [median, min, max].map((value) => value.toFixed(1));
  return `${middle} (${low} to ${high})`;
}

const CHECKOUT = join(import.meta.dirname, "..", "..");

/** Where, when and with what a benchmark runs. */
export interface Origin {
  /** The last commit that changed anything but pages and kept figures, with `-dirty` if something of it differs. */
  readonly commit: string;
  /** In the form of ISO 8601. */
  readonly date: string;
  readonly node: string;
  /** Empty if it was not recorded. */
  readonly cpu: string;
  readonly cores: number;
  /** The load average of a minute before the run. Default: it was not recorded. */
  readonly load?: number;
}

/** Files that no benchmark runs. */
const UNMEASURED = [":!bench/results", ":!docs", ":!*.md"];

/** Returns the origin of results that are measured from now on. */
export function originOf(): Origin {
  const git = (...command: readonly string[]) =>
    execFileSync("git", ["-C", CHECKOUT, ...command, "--", ".", ...UNMEASURED], { encoding: "utf8" }).trim();
  const dirty = git("status", "--porcelain") === "" ? "" : "-dirty";
  const commit = `${git("log", "-1", "--format=%h", "--abbrev=8")}${dirty}`;
  const [cpu] = cpus();
  const machine = { node: process.version, cpu: cpu?.model ?? "", cores: cpus().length };
  const load = Math.round((loadavg()[0] ?? 0) * 10) / 10;
  return { commit, date: new Date().toISOString(), ...machine, load };
}

/**
 * Writes the results of a benchmark with their origin to `.cache/bench/NAME.json`.
 *
 * @returns the path of the file
 */
export function writeResults(name: string, results: object): string {
  return write(join(CHECKOUT, ".cache", "bench"), name, { ...originOf(), ...results });
}

const KEPT = join(CHECKOUT, "bench", "results");

/** Writes figures to `bench/results/NAME.json`, from which the tables of `docs/performance.md` are made. */
export function keepResults(name: string, kept: object): void {
  write(KEPT, name, kept);
}

/** Reads what {@link keepResults} has written; returns undefined if there is nothing. */
export function readKept<T>(name: string): T | undefined {
  const path = join(KEPT, `${name}.json`);
  return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : undefined;
}

function write(folder: string, name: string, content: object): string {
  mkdirSync(folder, { recursive: true });
  const path = join(folder, `${name}.json`);
  const text = JSON.stringify(content, undefined, 2);
  // Lists of numbers have a line, not a line for each number.
  writeFileSync(
    path,
    `${text.replaceAll(/\[\s+(-?[\d.e-]+(?:,\s+-?[\d.e-]+)*)\s+\]/g, (_, list: string) => `[${list.replaceAll(/\s+/g, " ")}]`)}\n`,
  );
  return path;
}
