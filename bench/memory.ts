// The memory of workers: starts the built package with one worker and with four on a catalog of 1,000 tables and on one of a
// million (or --tables N), and measures its resident memory at rest: when every worker has answered, and after some seconds
// of calls. The gateways of a round rest at the same time.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { addRows, namespaceRow, tableRows } from "./loop/roots.ts";
import { type Figures, startFigures } from "./support/figures.ts";
import { runLightLoad } from "./support/light-load.ts";
import { residentBytes } from "./support/memory.ts";
import { type ServerProcess, startPackage } from "./support/process.ts";
import { roundsOf } from "./support/results.ts";

const WORKERS = [1, 4] as const;
const FEW_TABLES = 1_000;
const MANY_TABLES = "1000000";
const ROUNDS = "5";
/** So many that the system gives each worker some of them. */
const CONNECTIONS = 64;
const SECONDS = 3;
/** Time in which a gateway without calls returns memory to the system, in milliseconds: V8 keeps free pages for some seconds. */
const REST_MS = 40_000;

/** The most that four workers have, as a multiple of one, for the larger catalog. */
const MOST_TIMES = 1.3;

/** A gateway, and its memory in MiB: when every worker has answered, and after some seconds of calls. */
interface Case {
  readonly tables: number;
  readonly workers: number;
  readonly loaded: number[];
  readonly called: number[];
}

/** Runs the comparison; `--tables` is the size of the larger catalog, `--rounds` the number of starts of each gateway. */
export async function run(args: readonly string[]): Promise<Figures[]> {
  const options = {
    tables: { type: "string", default: MANY_TABLES },
    rounds: { type: "string", default: ROUNDS },
  } as const;
  const { values } = parseArgs({ args: [...args], options });
  const sizes = [FEW_TABLES, Number(values.tables)];
  const folder = await mkdtemp(join(tmpdir(), "lance-gateway-bench-"));
  try {
    for (const tables of sizes) await addRows(join(folder, String(tables)), rows(tables));
    const cases = sizes.flatMap((tables) =>
      WORKERS.map((workers): Case => ({ tables, workers, loaded: [], called: [] })),
    );
    for (let round = 0; round < Number(values.rounds); round++) await measure(folder, cases);
    const figures = startFigures("resident memory, MiB", "at rest", "× one worker", "after calls", "×");
    for (const { tables, workers, loaded, called } of cases) {
      const one = cases.find((other) => other.tables === tables) as Case;
      const times = [timesOf(loaded, one.loaded), timesOf(called, one.called)];
      const isBound = workers > 1 && tables !== FEW_TABLES;
      figures.add(
        [
          `${tables.toLocaleString("en")} tables, ${workers} ${workers === 1 ? "worker" : "workers"}`,
          ...[roundsOf(loaded), times[0] ?? "", roundsOf(called), times[1] ?? ""],
        ],
        ...(isBound ? times.map((of) => ({ of, most: MOST_TIMES, unit: "×" })) : []),
      );
    }
    return [figures];
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const timesOf = (own: readonly number[], one: readonly number[]) =>
  roundsOf(own).median / roundsOf(one).median;

function* rows(tables: number) {
  yield namespaceRow("bench");
  yield* tableRows("bench", tables);
}

/** Starts a gateway for each case, and notes their memory once they have rested together. */
async function measure(folder: string, cases: readonly Case[]): Promise<void> {
  const gateways: ServerProcess[] = [];
  const mib = (at: number) => Math.round(residentBytes(gateways[at]?.pid ?? 0) / 2 ** 20);
  const load = (at: number, seconds: number) => {
    const { port = 0 } = gateways[at] ?? {};
    const paths = pathsOf(cases[at]?.tables ?? 0);
    return runLightLoad({ port, method: "POST", paths, body: "{}", connections: CONNECTIONS, seconds });
  };
  try {
    for (const [at, { tables, workers }] of cases.entries()) {
      const root = ["--root", join(folder, String(tables)), "--no-maintenance"];
      gateways.push(await startPackage(...root, "--workers", String(workers)));
      // The first answers come when the rows have been read.
      await load(at, 0.5);
    }
    await sleep(REST_MS);
    for (const [at, { loaded }] of cases.entries()) loaded.push(mib(at));
    for (const at of cases.keys()) await load(at, SECONDS);
    await sleep(REST_MS);
    for (const [at, { called }] of cases.entries()) called.push(mib(at));
  } finally {
    await Promise.all(gateways.map((gateway) => gateway.stop()));
  }
}

function pathsOf(tables: number): string[] {
  return Array.from({ length: 199 }, (_, i) => {
    const number = Math.floor((i / 199) * tables);
    return `/v1/table/bench$t${String(number).padStart(7, "0")}/describe`;
  });
}
