import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Progress, readProgress } from "../../bench/report/progress.ts";
import { SUITES } from "../../bench/report/suites.ts";
import { figuresText, type Kept, numberText } from "../../bench/support/figures.ts";
import { readKept } from "../../bench/support/results.ts";
import { adapterText, answersText } from "./answers.ts";
import { replaceBetweenMarkers } from "./markers.ts";

const figuresOf = (name: string) => readKept<Kept>(name)?.figures;

/** The pages with figures of benchmarks, and their tables by the names of their markers. */
export const performancePages: Readonly<Record<string, Readonly<Record<string, () => string>>>> = {
  "docs/comparison.md": { adapter: () => adapterText(figuresOf) },
  // The answers, the run of the report, and a table for each benchmark.
  "docs/performance.md": {
    answers: () => answersText(figuresOf),
    report: () => reportText(readProgress()),
    ...Object.fromEntries(
      SUITES.map(({ name }) => [name, () => benchmarkText(name, readKept<Kept>(name), readProgress())]),
    ),
  },
};

/** Writes the pages from what is kept in `bench/results`. */
export function writePerformancePages(): void {
  for (const [page, tables] of Object.entries(performancePages)) {
    const path = join(import.meta.dirname, "..", "..", page);
    let text = readFileSync(path, "utf8");
    for (const [name, make] of Object.entries(tables)) text = replaceBetweenMarkers(page, text, name, make());
    writeFileSync(path, text);
  }
}

/** Returns what the last report measured, and which benchmarks it could not. */
export function reportText(progress: Progress | undefined): string {
  if (progress === undefined) return "No report of all benchmarks has run yet: each table names its commit.";
  const { commit, outcomes } = progress;
  const of = (name: string) => outcomes[name] ?? { seconds: 0, failure: "it has not run" };
  const missing = SUITES.filter(({ name }) => of(name).failure !== undefined);
  const sum = (key: "seconds" | "reached" | "missed") =>
    Object.values(outcomes).reduce((total, outcome) => total + (outcome[key] ?? 0), 0);
  const goals = `${sum("reached")} goals are reached and ${sum("missed")} **missed**`;
  const measured = `Measured at commit ${commit} in ${Math.ceil(sum("seconds") / 60)} min: ${SUITES.length - missing.length} of ${SUITES.length} benchmarks. ${goals}.`;
  if (missing.length === 0) return measured;
  const list = missing.map(({ name }) => `- ${name}: ${of(name).failure}`).join("\n");
  return `${measured}\n\nNot measured at this commit:\n\n${list}`;
}

/** Returns the tables of a benchmark with their origin, or that it was not measured at the report's commit. */
export function benchmarkText(name: string, kept: Kept | undefined, progress: Progress | undefined): string {
  const isOld = progress !== undefined && kept?.origin.commit !== progress.commit;
  const reason = progress?.outcomes[name]?.failure;
  const old = `Not measured at commit ${progress?.commit}${reason === undefined ? "" : `: ${reason}`}.`;
  if (kept === undefined) return isOld ? old : "Not measured yet.";
  const tables = [...kept.figures.map(figuresText), originText(kept)];
  return (isOld ? [`**${old}** The figures are older:`, ...tables] : tables).join("\n\n");
}

function originText({ origin, command, rounds }: Kept): string {
  const { commit, date, node, cores, cpu, load } = origin;
  const facts = [
    `${rounds > 1 ? `Medians of ${rounds} rounds, with their range` : "A single round"}; commit ${commit}`,
    date.slice(0, 10),
    `Node ${node}`,
    `${cores} cores${cpu === "" ? "" : ` of an ${cpu}`}`,
    ...(load === undefined ? [] : [`load average ${numberText(load)} before the run`]),
  ];
  return `${facts.join(", ")}. \`npm run bench -- ${command}\``;
}
