// LanceDB's Python client on a directory, through the gateway, and through a gateway in front of that: the same work in
// one process of the client, in turn. npm run bench -- remote [--rounds N] [--cases "add a row,scan"] [--sides library,gateway]
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { pythonInterpreter } from "../scripts/python-environment.ts";
import { type ServerProcess, startGateway } from "./support/process.ts";
import { keepResults, type Rounds, roundsOf } from "./support/results.ts";

const CLIENT = join(import.meta.dirname, "remote", "client.py");
const OPTIONS = {
  rounds: { type: "string", default: "5" },
  /** The cases to time, by parts of their titles. Default: all of them, whose figures are kept for the documentation. */
  cases: { type: "string", default: "" },
  sides: { type: "string", default: "library,gateway,two gateways" },
} as const;

/**
 * Where the client works: with the library in its own process, through the gateway, or through two of them. A gateway acknowledges
 * changes that are on the disk; for the library they are timed without a sync and with one.
 */
export const SIDES = ["library", "library, synced", "gateway", "two gateways"] as const;

/** Figures of a case, each present where the case has it: times in milliseconds, calls and megabytes per second. */
export type CaseFigures = Partial<Record<"p50" | "p99" | "rate" | "megabytes", Rounds>>;

/** The figures by case and side, as `npm run bench -- remote` writes them. */
export interface RemoteResult {
  /** Variables that choose the allocator of the gateways; empty for that of the C library. */
  readonly allocator: Readonly<Record<string, string>>;
  readonly cases: Readonly<Record<string, Readonly<Partial<Record<(typeof SIDES)[number], CaseFigures>>>>>;
}

/** Runs the comparison: `[--rounds NUMBER] [--cases TEXTS] [--sides NAMES]`. */
export async function run(args: readonly string[]): Promise<void> {
  const { rounds, cases: wanted, sides } = parseArgs({ args: [...args], options: OPTIONS }).values;
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
    const client = spawn(python, [CLIENT, rounds, wanted, ...databases], {
      stdio: ["ignore", "pipe", "inherit"],
      env,
    });
    const results = { allocator: allocatorOf(process.env), cases: await readCases(client) };
    if (wanted === "") keepResults("remote", results);
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

async function readCases(client: ChildProcess): Promise<RemoteResult["cases"]> {
  const ended = once(client, "exit");
  const cases: Record<string, Record<string, CaseFigures>> = {};
  for await (const text of createInterface({ input: client.stdout as NonNullable<ChildProcess["stdout"]> })) {
    const line = JSON.parse(text) as Line;
    const sides = Object.entries(line.figures).map(([side, rounds]) => [side, summaryOf(rounds)] as const);
    cases[line.case] = Object.fromEntries(sides);
    console.log(line.case);
    for (const [side, figures] of sides) console.log(`  ${side}: ${textOf(figures)}`);
  }
  const [code] = await ended;
  if (code !== 0) throw new Error(`the client ended with ${code}`);
  return cases as RemoteResult["cases"];
}

function allocatorOf(variables: NodeJS.ProcessEnv): RemoteResult["allocator"] {
  const { LD_PRELOAD, MALLOC_CONF } = variables;
  return { ...(LD_PRELOAD && { LD_PRELOAD }), ...(MALLOC_CONF && { MALLOC_CONF }) };
}

function summaryOf(rounds: readonly Readonly<Record<string, number>>[]): CaseFigures {
  const names = Object.keys(rounds[0] ?? {});
  return Object.fromEntries(
    names.map((name) => [name, roundsOf(rounds.map((round) => round[name] ?? Number.NaN))]),
  );
}

function textOf(figures: CaseFigures): string {
  const parts = Object.entries(figures).map(([name, { median, min, max }]) => {
    const numbers = [median, min, max].map((value) => value.toFixed(1));
    return `${name} ${numbers[0]} (${numbers[1]} to ${numbers[2]})`;
  });
  return parts.join(", ");
}
