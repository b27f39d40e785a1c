import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Origin, Rounds } from "../../bench/support/results.ts";

/** Reads the result that a benchmark has written, with its origin. */
export function readResult<T>(name: string): T & { readonly origin: Origin } {
  const file = join(import.meta.dirname, "..", "..", "bench", "results", `${name}.json`);
  return JSON.parse(readFileSync(file, "utf8"));
}

/** The median of a value with its range. */
export function shown({ median, min, max }: Rounds): string {
  return `${numberText(median)} (${numberText(min)}–${numberText(max)})`;
}

/** The median of a value with its range, in whole numbers. */
export function shownWhole({ median, min, max, rounds }: Rounds): string {
  return shown({ median: Math.round(median), min: Math.round(min), max: Math.round(max), rounds });
}

/** The mark behind a goal that is not reached. */
export function missedText(isMissed: boolean): string {
  return isMissed ? ", **missed**" : "";
}

export function numberText(value: number): string {
  return value.toLocaleString("en", { maximumFractionDigits: 2 });
}

/** The sentence below a table that says what its figures are, without its full stop. */
export function originText(rounds: number | undefined, { commit, node, cores, cpu }: Origin): string {
  return `Medians of ${rounds} rounds, with their range; commit ${commit}, Node ${node}, ${cores} cores of an ${cpu}`;
}
