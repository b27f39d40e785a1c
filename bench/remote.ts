// LanceDB's Python client on a directory, through the gateway, and through a gateway in front of that: the same work in
// one process of the client, in turn. npm run bench -- remote [--rounds N] [--searches N] [--cases "add a row,scan"] [--sides library,gateway]
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { pythonInterpreter } from "../scripts/python-environment.ts";
import { type Figures, type FiguresInProgress, type Goal, startFigures } from "./support/figures.ts";
import { type ServerProcess, startGateway } from "./support/process.ts";
import { type Rounds, roundsOf } from "./support/results.ts";

const CLIENT = join(import.meta.dirname, "remote", "client.py");
const OPTIONS = {
  rounds: { type: "string", default: "5" },
  /** Searches of a client alone in a round; other calls are in proportion. */
  searches: { type: "string", default: "100" },
  /** The cases to time, by parts of their titles. Default: all of them. */
  cases: { type: "string", default: "" },
  sides: { type: "string", default: "library,gateway,two gateways" },
} as const;

/**
 * Where the client works: with the library in its own process, through the gateway, or through two of them. A gateway acknowledges
 * changes that are on the disk; for the library they are timed without a sync and with one.
 */
const SIDES = ["library", "library, synced", "gateway", "two gateways"] as const;

/** Figures of a case, each present where the case has it: times in milliseconds, calls and megabytes per second. */
type CaseFigures = Partial<Record<"p50" | "p99" | "rate" | "megabytes", Rounds>>;

/** By side. */
type Sides = Readonly<Partial<Record<(typeof SIDES)[number], CaseFigures>>>;

const UNITS: Readonly<Record<keyof CaseFigures, string>> = {
  p50: "p50 in ms",
  p99: "p99 in ms",
  rate: "per second",
  megabytes: "MB/s",
};

/** Maximum time of the gateway: milliseconds more than the library for searches, a multiple of the library's equally durable time for changes. */
const MOST_MORE = { "search with IVF_PQ": 1, "full text": 1, hybrid: 1 } as Readonly<Record<string, number>>;
const MOST_TIMES = {
  "add a row": 1.5,
  "add 100,000 rows": 1.3,
  "merge 1,000 rows": 1.2,
  "list 1,000 tables": 1.3,
} as Readonly<Record<string, number>>;
/** The least multiple of the library's rate by the figure. */
const LEAST_TIMES: Partial<Record<keyof CaseFigures, number>> = { rate: 1, megabytes: 0.9 };

/** Runs the comparison: `[--rounds NUMBER] [--searches NUMBER] [--cases TEXTS] [--sides NAMES]`. */
export async function run(args: readonly string[]): Promise<Figures[]> {
  const { rounds, searches, cases: wanted, sides } = parseArgs({ args: [...args], options: OPTIONS }).values;
  const python = pythonInterpreter();
  const folder = await mkdtemp(join(tmpdir(), "lance-gateway-bench-"));
  const gateways: ServerProcess[] = [];
  const start = async (...options: readonly string[]) => {
    const gateway = await startGateway(...options);
    gateways.push(gateway);
    return `http://127.0.0.1:${gateway.port}`;
  };
  try {
    const uris: Readonly<Record<string, () => Promise<string>>> = {
      library: async () => join(folder, "library"),
      gateway: () => start("--root", join(folder, "gateway")),
      "two gateways": async () =>
        start("--backend", "rest", "--uri", await start("--root", join(folder, "behind"))),
    };
    const databases: string[] = [];
    for (const side of sides.split(",")) databases.push(`${side}=${await uris[side]?.()}`);
    // An allocator that is loaded for the gateways is not the library's.
    const env = { ...process.env, LD_PRELOAD: "" };
    const client = spawn(python, [CLIENT, rounds, searches, wanted, ...databases], {
      stdio: ["ignore", "pipe", "inherit"],
      env,
    });
    const figures = startFigures("work", ...SIDES);
    await readCases(client, figures);
    return [figures];
  } finally {
    await Promise.all(gateways.map((gateway) => gateway.stop()));
    await rm(folder, { recursive: true, force: true });
  }
}

/** A line of the client: the figures of each round, by side. */
interface Line {
  readonly case: string;
  readonly figures: Readonly<Record<string, readonly Readonly<Record<string, number>>[]>>;
}

async function readCases(client: ChildProcess, figures: FiguresInProgress): Promise<void> {
  const ended = once(client, "exit");
  for await (const text of createInterface({ input: client.stdout as NonNullable<ChildProcess["stdout"]> })) {
    const line = JSON.parse(text) as Line;
    const sides: Sides = Object.fromEntries(
      Object.entries(line.figures).map(([side, rounds]) => [side, summaryOf(rounds)]),
    );
    for (const [name, unit] of Object.entries(UNITS) as [keyof CaseFigures, string][]) {
      const cells = SIDES.map((side) => sides[side]?.[name] ?? "");
      if (cells.some((cell) => cell !== ""))
        figures.add([`${line.case}, ${unit}`, ...cells], ...goalsOf(line.case, name, sides));
    }
  }
  const [code] = await ended;
  if (code !== 0) throw new Error(`the client ended with ${code}`);
}

function goalsOf(title: string, name: keyof CaseFigures, sides: Sides): Goal[] {
  const own = sides.gateway?.[name]?.median;
  const library = (sides["library, synced"] ?? sides.library)?.[name]?.median;
  if (own === undefined || library === undefined) return [];
  const least = LEAST_TIMES[name];
  if (least !== undefined) return [{ of: own / library, least, unit: "×" }];
  if (name !== "p50") return [];
  const [more, times] = [MOST_MORE[title], MOST_TIMES[title]];
  if (more !== undefined) return [{ of: own - library, most: more, unit: "ms more" }];
  return times === undefined ? [] : [{ of: own / library, most: times, unit: "×" }];
}

function summaryOf(rounds: readonly Readonly<Record<string, number>>[]): CaseFigures {
  const names = Object.keys(rounds[0] ?? {});
  return Object.fromEntries(
    names.map((name) => [name, roundsOf(rounds.map((round) => round[name] ?? Number.NaN))]),
  );
}
