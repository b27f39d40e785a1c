// LanceDB's Python client on a directory, through the gateway, and through a gateway in front of that: the same work in
// one process of the client, in turn. npm run bench -- remote [--rounds N]
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
const OPTIONS = { rounds: { type: "string", default: "5" } } as const;

/** Where the client works: with the library in its own process, through the gateway, or through two of them. */
export const SIDES = ["library", "gateway", "two gateways"] as const;

/** Figures of a case, each present where the case has it: times in milliseconds, calls and megabytes per second. */
export type CaseFigures = Partial<Record<"p50" | "p99" | "rate" | "megabytes", Rounds>>;

/** The figures by case and side, as `npm run bench -- remote` writes them. */
export interface RemoteResult {
  /** Variables that choose the allocator of the gateways; empty for that of the C library. */
  readonly allocator: Readonly<Record<string, string>>;
  readonly cases: Readonly<Record<string, Readonly<Record<(typeof SIDES)[number], CaseFigures>>>>;
}

/** Runs the comparison: `[--rounds NUMBER]`. */
export async function run(args: readonly string[]): Promise<void> {
  const { rounds } = parseArgs({ args: [...args], options: OPTIONS }).values;
  const python = pythonInterpreter();
  const folder = await mkdtemp(join(tmpdir(), "lance-gateway-bench-"));
  const gateways: ServerProcess[] = [];
  const start = async (...options: readonly string[]) => {
    const gateway = await startGateway(...options);
    gateways.push(gateway);
    return `http://127.0.0.1:${gateway.port}`;
  };
  try {
    const uris: Readonly<Record<(typeof SIDES)[number], string>> = {
      library: join(folder, "library"),
      gateway: await start("--root", join(folder, "gateway")),
      "two gateways": await start(
        ...["--backend", "rest", "--uri", await start("--root", join(folder, "behind"))],
      ),
    };
    const databases = Object.entries(uris).map(([name, uri]) => `${name}=${uri}`);
    // An allocator that is loaded for the gateways is not the library's.
    const env = { ...process.env, LD_PRELOAD: "" };
    const client = spawn(python, [CLIENT, rounds, ...databases], {
      stdio: ["ignore", "pipe", "inherit"],
      env,
    });
    keepResults("remote", { allocator: allocatorOf(process.env), cases: await readCases(client) });
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
