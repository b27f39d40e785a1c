import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { runChild } from "../../bench/report/child.ts";
import { missingFor } from "../../bench/report/needs.ts";
import type { Outcome } from "../../bench/report/progress.ts";
import { limitOf, MOST_SECONDS, SUITES } from "../../bench/report/suites.ts";
import {
  addContest,
  cellText,
  type Figures,
  figuresText,
  isReached,
  type Kept,
  numberText,
  startFigures,
} from "../../bench/support/figures.ts";
import { roundsOf, timesOf } from "../../bench/support/results.ts";
import { answersText } from "../../scripts/tables/answers.ts";
import { benchmarkText, performancePages, reportText } from "../../scripts/tables/performance.ts";

const FIGURES: Figures = {
  heads: ["call", "ms"],
  rows: [{ cells: ["describe", roundsOf([3, 1, 2])], goals: [] }],
};
const KEPT: Kept = {
  origin: { commit: "aaaa", date: "2026-01-02T03:04:05.000Z", node: "v1", cpu: "CPU", cores: 2, load: 0.25 },
  command: "wires --rounds 3",
  rounds: 3,
  figures: [FIGURES],
};
const MEASURED = { seconds: 61, reached: 2, missed: 1 };

function outcomesOf(failure?: string): Record<string, Outcome> {
  const all: Record<string, Outcome> = Object.fromEntries(SUITES.map(({ name }) => [name, MEASURED]));
  return failure === undefined ? all : { ...all, wires: { seconds: 5, failure } };
}

test("numbers have three digits, and whole numbers all of theirs", () => {
  expect([0.1234, 12.34, 123.4, 12_345.6, Number.NaN].map(numberText)).toEqual([
    ...["0.12", "12.3", "123", "12,346", "?"],
  ]);
});

test("a cell of rounds has their median and range, and a single value no range", () => {
  expect([roundsOf([3, 1, 2]), roundsOf([5]), 4, "text"].map(cellText)).toEqual([
    "2 (1–3)",
    "5",
    "4",
    "text",
  ]);
});

test("a goal is reached at its bound, and a value that is not a number misses it", () => {
  const values = [1.9, 2, 2.1, Number.NaN];
  expect(values.map((of) => isReached({ of, least: 2 }))).toEqual([false, true, true, false]);
  expect(values.map((of) => isReached({ of, most: 2 }))).toEqual([true, true, false, false]);
});

test("figures with goals have a column of goals, and others have none", () => {
  expect(figuresText(FIGURES)).toBe("| call | ms |\n| --- | --- |\n| describe | 2 (1–3) |");
  const goals = [
    { of: 2, most: 1.5, unit: "ms" },
    { of: 2, least: 1 },
  ];
  expect(figuresText({ ...FIGURES, rows: [{ cells: ["describe", 2], goals }] })).toBe(
    "| call | ms | goal |\n| --- | --- | --- |\n| describe | 2 | ≤ 1.5 ms, **missed**; ≥ 1, reached |",
  );
});

test("of many goals of a row, those that are missed are shown", () => {
  const text = (values: readonly number[]) => {
    const goals = values.map((of) => ({ of, most: 1 }));
    return figuresText({ heads: ["a"], rows: [{ cells: ["b"], goals }] }).split("\n")[2];
  };
  expect(text([1, 1, 1])).toBe("| b | reached |");
  expect(text([1, 2, 1])).toBe("| b | ≤ 1, **missed** |");
});

test("a contest compares the first contestant with each other one, round by round", () => {
  vi.spyOn(console, "log").mockReturnValue();
  onTestFinished(() => void vi.restoreAllMocks());
  const figures = startFigures("call", "calls/s", "×");
  addContest(figures, "REST", { gateway: roundsOf([10, 20, 30]), bare: roundsOf([20, 20, 10]) }, { bare: 1 });
  expect(figures.rows.map(({ cells, goals }) => [...cells.map(cellText), goals.map(isReached)])).toEqual([
    ["REST: gateway", "20 (10–30)", "", []],
    ["REST: bare", "20 (10–20)", "1 (0.5–3)", [true]],
  ]);
  expect(timesOf(roundsOf([1, 2]), roundsOf([2, 2])).rounds).toEqual([0.5, 1]);
});

test("the report's benchmarks have names and markers of their own, and time to spare within 40 minutes", () => {
  const names = SUITES.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  expect(SUITES.reduce((sum, { seconds }) => sum + seconds, 0)).toBeLessThanOrEqual(0.85 * MOST_SECONDS);
  const page = readFileSync(join(import.meta.dirname, "../../docs/performance.md"), "utf8");
  const marked = [...page.matchAll(/<!-- begin:(\S+) -->/g)].map(([, name]) => name);
  expect(marked.toSorted()).toEqual(Object.keys(performancePages["docs/performance.md"] ?? {}).toSorted());
});

test("a benchmark's time limit is half as long again as its usual time, and ends with the report's", () => {
  const [suite] = SUITES.filter(({ seconds }) => seconds === 100);
  if (suite === undefined) throw new Error("no benchmark takes 100 s");
  expect([0, 2_200, 2_300, 2_500].map((after) => limitOf(suite, after))).toEqual([150, 150, 100, 0]);
});

test("a benchmark's tables name commit, machine, load, rounds and command", () => {
  expect(benchmarkText("wires", KEPT, undefined)).toBe(
    `${figuresText(FIGURES)}\n\nMedians of 3 rounds, with their range; commit aaaa, 2026-01-02, Node v1, 2 cores of an CPU, load average 0.25 before the run. \`npm run bench -- wires --rounds 3\``,
  );
});

test("a benchmark without figures of the report's commit says so and keeps the older ones", () => {
  const failed = { commit: "bbbb", outcomes: outcomesOf("it exceeded its time of 90 s") };
  const text = benchmarkText("wires", KEPT, failed);
  expect(text).toContain(
    "**Not measured at commit bbbb: it exceeded its time of 90 s.** The figures are older:",
  );
  expect(text).toContain("commit aaaa");
  expect(benchmarkText("wires", undefined, failed)).toBe(
    "Not measured at commit bbbb: it exceeded its time of 90 s.",
  );
  expect(benchmarkText("wires", undefined, undefined)).toBe("Not measured yet.");
  expect(benchmarkText("wires", KEPT, { commit: "aaaa", outcomes: outcomesOf() })).not.toContain(
    "Not measured",
  );
});

test("the page says how many benchmarks the report measured, and which it did not", () => {
  const { length } = SUITES;
  expect(reportText({ commit: "bbbb", outcomes: outcomesOf() })).toBe(
    `Measured at commit bbbb in ${Math.ceil((61 * length) / 60)} min: ${length} of ${length} benchmarks. ${2 * length} goals are reached and ${length} **missed**.`,
  );
  const text = reportText({ commit: "bbbb", outcomes: outcomesOf("it ended with 1") });
  expect(text).toContain(`${length - 1} of ${length} benchmarks`);
  expect(text).toContain("Not measured at this commit:\n\n- wires: it ended with 1");
  expect(reportText(undefined)).toContain("each table names its commit");
});

test("answers are made of figures, and a missing figure is named", () => {
  const rows = [
    { cells: ["2,000", "describe, 16 connections", roundsOf([100, 300, 200]), 12.24], goals: [] },
  ];
  const heads = ["tables", "work", "gateway, /s", "gateway, ×"];
  const [first, ...others] = answersText((name) =>
    name === "catalog" ? [{ heads, rows }] : undefined,
  ).split("\n");
  expect(first).toBe(
    "1. [How fast is a call?](#how-fast-is-a-call) 200 describes a second over 2,000 tables, 12.2 times the Rust adapter; (not measured) ms on a bucket 20 ms away.",
  );
  expect(others).toHaveLength(4);
  for (const line of others) expect(line).toContain("(not measured)");
});

test("the answers find all of their figures in those that are kept, but for syncs of the library", () => {
  const kept = performancePages["docs/performance.md"]?.["answers"]?.() ?? "";
  for (const line of kept.split("\n").slice(0, 4)) expect(line).not.toContain("(not measured)");
  expect(performancePages["docs/comparison.md"]?.["adapter"]?.()).not.toContain("(not measured)");
});

test("what is missing names its command and the benchmarks that need it", () => {
  for (const { command, suites } of missingFor(SUITES)) {
    expect(command).toMatch(/^\S+ \S+/);
    expect(suites.length).toBeGreaterThan(0);
  }
  expect(missingFor([])).toEqual([]);
});

/** Runs a program in place of the benchmarks' command. */
function runProgram(source: string, seconds: number, stop = new AbortController().signal) {
  const folder = mkdtempSync(join(tmpdir(), "lance-gateway-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const program = join(folder, "program.mjs");
  writeFileSync(program, source);
  return runChild({ name: "test", command: ["a", "b"], seconds }, stop, program);
}

test("a benchmark's process hands its figures over", async () => {
  const figures = { heads: ["a"], rows: [] };
  const source = `process.send([{ ...${JSON.stringify(figures)}, heads: process.argv.slice(2) }]);`;
  expect(await runProgram(source, 60)).toEqual({ figures: [{ heads: ["a", "b"], rows: [] }] });
});

test("a benchmark that ends without figures fails with its code", async () => {
  expect(await runProgram("process.exit(3)", 60)).toEqual({ failure: "it ended with 3" });
});

test("a benchmark that exceeds its time fails", async () => {
  expect(await runProgram("setInterval(() => {}, 1000)", 1)).toEqual({
    failure: "it exceeded its time of 1 s",
  });
});

test("a benchmark that is stopped ends with all processes that it has started", async () => {
  const folder = mkdtempSync(join(tmpdir(), "lance-gateway-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "pid");
  const source = `import { spawn } from "node:child_process"; import { writeFileSync } from "node:fs";
    const child = spawn("sleep", ["600"]); writeFileSync(${JSON.stringify(file)}, child.pid + "."); setInterval(() => {}, 1000);`;
  const stop = new AbortController();
  const ending = runProgram(source, 600, stop.signal);
  const started = () => (existsSync(file) ? readFileSync(file, "utf8") : "");
  await expect.poll(started).toMatch(/\d+\./);
  stop.abort();
  expect(await ending).toEqual({ failure: "it was stopped" });
  await expect.poll(() => isRunning(Number.parseInt(started(), 10))).toBe(false);
});

/** Whether a process runs: one that has ended may wait for its parent. */
function isRunning(pid: number): boolean {
  try {
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}
