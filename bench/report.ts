// Remakes docs/performance.md: runs the report's form of every benchmark in turn, each in a process of its own with a time limit, and writes its table
// as soon as it is there. A run that was stopped goes on with what is not measured at this commit.
import { parseArgs } from "node:util";
import { writePerformancePages } from "../scripts/tables/performance.ts";
import { type Ending, runChild } from "./report/child.ts";
import { missingFor } from "./report/needs.ts";
import { type Outcome, type Progress, readProgress, writeProgress } from "./report/progress.ts";
import { limitOf, SUITES, type Suite } from "./report/suites.ts";
import { type Figures, isReached, keepFigures } from "./support/figures.ts";
import { originOf } from "./support/results.ts";

const OPTIONS = {
  /** Benchmarks by their names, measured in any case. Default: those that are not measured at this commit. */
  only: { type: "string" },
  list: { type: "boolean", default: false },
  /** Measures benchmarks again that are measured at this commit. */
  again: { type: "boolean", default: false },
  /** Leaves out the benchmarks for which something is missing on this machine. */
  "skip-missing": { type: "boolean", default: false },
} as const;

/** Runs the report: `[--list] [--only NAME,NAME] [--again] [--skip-missing]`. */
export async function run(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({ args: [...args], options: OPTIONS });
  if (values.list) return list();
  const chosen = choose(values.only);
  const missing = missingFor(chosen);
  for (const { need, command, suites } of missing)
    console.error(`${need} is missing for ${suites.join(", ")}: ${command}`);
  if (missing.length > 0 && !values["skip-missing"]) {
    console.error("Nothing was measured. --skip-missing leaves these benchmarks out.");
    process.exitCode = 2;
    return;
  }
  const lacking = new Set(missing.flatMap(({ suites }) => suites));
  const { commit } = originOf();
  const known = readProgress();
  const progress: Progress = known?.commit === commit ? known : { commit, outcomes: {} };
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => stop.abort());
  const began = performance.now();
  for (const suite of chosen) {
    const isMeasured =
      progress.outcomes[suite.name]?.failure === undefined && suite.name in progress.outcomes;
    if (isMeasured && values.only === undefined && !values.again) continue;
    const limit = Math.floor(limitOf(suite, (performance.now() - began) / 1_000));
    if (stop.signal.aborted || limit === 0) break;
    const outcome = lacking.has(suite.name)
      ? { seconds: 0, failure: "what it needs is missing" }
      : await measure(suite, limit, stop.signal);
    if (stop.signal.aborted) break;
    progress.outcomes[suite.name] = outcome;
    writeProgress(progress);
    writePerformancePages();
    console.log(lineOf(suite.name, outcome));
  }
  summarize(progress);
  if (stop.signal.aborted) console.log("Stopped; the same command goes on.");
  process.exit(SUITES.every(({ name }) => progress.outcomes[name]?.failure === undefined) ? 0 : 1);
}

function choose(only: string | undefined): readonly Suite[] {
  if (only === undefined) return SUITES;
  const names = only.split(",");
  const unknown = names.find((name) => SUITES.every((suite) => suite.name !== name));
  if (unknown !== undefined) throw new Error(`there is no benchmark ${unknown} in the report; see --list`);
  return SUITES.filter(({ name }) => names.includes(name));
}

function list(): void {
  for (const { name, command, seconds } of SUITES)
    console.log(`${name.padEnd(14)} ${String(seconds).padStart(4)} s  npm run bench -- ${command.join(" ")}`);
  const sum = SUITES.reduce((total, { seconds }) => total + seconds, 0);
  console.log(`${"all".padEnd(14)} ${String(sum).padStart(4)} s`);
}

async function measure(suite: Suite, limit: number, stop: AbortSignal): Promise<Outcome> {
  console.log(`${suite.name}, about ${suite.seconds} s, at most ${limit}`);
  const origin = originOf();
  const began = performance.now();
  const ending: Ending = await runChild({ ...suite, seconds: limit }, stop);
  const seconds = Math.round((performance.now() - began) / 1_000);
  if ("failure" in ending) return { seconds, failure: ending.failure };
  const { figures } = ending;
  keepFigures(suite.name, { origin, command: suite.command.join(" "), figures });
  return { seconds, ...countGoals(figures) };
}

function countGoals(figures: readonly Figures[]): Pick<Outcome, "reached" | "missed"> {
  const goals = figures.flatMap(({ rows }) => rows.flatMap((row) => row.goals));
  const reached = goals.filter(isReached).length;
  return { reached, missed: goals.length - reached };
}

function lineOf(name: string, { seconds, failure, reached = 0, missed = 0 }: Outcome): string {
  const result =
    failure === undefined ? `${reached} goals reached, ${missed} missed` : `not measured: ${failure}`;
  return `  ${name.padEnd(14)} ${String(seconds).padStart(4)} s  ${result}`;
}

function summarize({ commit, outcomes }: Progress): void {
  console.log(`\nCommit ${commit}`);
  for (const { name } of SUITES)
    console.log(lineOf(name, outcomes[name] ?? { seconds: 0, failure: "not yet" }));
  const all = Object.values(outcomes);
  const sum = (of: (outcome: Outcome) => number | undefined) =>
    all.reduce((total, each) => total + (of(each) ?? 0), 0);
  console.log(
    lineOf("all", {
      seconds: sum(({ seconds }) => seconds),
      reached: sum((each) => each.reached),
      missed: sum((each) => each.missed),
    }),
  );
}
