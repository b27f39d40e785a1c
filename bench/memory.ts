// The memory of workers: starts the built package with one worker and with four on a catalog of 1,000 tables and on one of a
// million (or --tables N), and measures its resident memory at rest: when every worker has answered, and after some seconds
// of calls.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { addRows, namespaceRow, tableRows } from "./loop/roots.ts";
import { runLightLoad } from "./support/light-load.ts";
import { residentBytes } from "./support/memory.ts";
import { startPackage } from "./support/process.ts";
import { keepResults, type Rounds, roundsOf } from "./support/results.ts";

const WORKERS = [1, 4] as const;
const FEW_TABLES = 1_000;
const MANY_TABLES = "1000000";
const ROUNDS = "5";
/** So many that the system gives each worker some of them. */
const CONNECTIONS = 64;
const SECONDS = 3;
/** Time in which a gateway without calls returns memory to the system, in milliseconds: V8 keeps free pages for some seconds. */
const REST_MS = 40_000;

/** Resident memory in MiB. */
interface Figures {
  /** When every worker has answered. */
  readonly loaded: Rounds;
  /** After some seconds of calls. */
  readonly called: Rounds;
}

/** Runs the comparison; `--tables` is the size of the larger catalog, `--rounds` the number of starts of each gateway. */
export async function run(args: readonly string[]): Promise<void> {
  const options = {
    tables: { type: "string", default: MANY_TABLES },
    rounds: { type: "string", default: ROUNDS },
  } as const;
  const { values } = parseArgs({ args: [...args], options });
  const rounds = Number(values.rounds);
  const folder = await mkdtemp(join(tmpdir(), "lance-gateway-bench-"));
  try {
    const residentMiB: Record<string, Record<string, Figures>> = {};
    for (const tables of [FEW_TABLES, Number(values.tables)]) {
      const root = join(folder, String(tables));
      await addRows(root, rows(tables));
      residentMiB[tables] = {};
      for (const workers of WORKERS)
        residentMiB[tables][workers] = await measure({ root, tables, workers, rounds });
    }
    for (const [tables, figures] of Object.entries(residentMiB)) {
      for (const [workers, { loaded, called }] of Object.entries(figures)) {
        console.log(
          `${tables} tables, ${workers} workers: ${text(loaded)} MiB, after calls ${text(called)} MiB`,
        );
      }
    }
    keepResults("memory", { residentMiB });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function* rows(tables: number) {
  yield namespaceRow("bench");
  yield* tableRows("bench", tables);
}

const text = ({ median, min, max }: Rounds) => `${median} (${min} to ${max})`;

interface Case {
  readonly root: string;
  readonly tables: number;
  readonly workers: number;
  readonly rounds: number;
}

async function measure({ root, tables, workers, rounds }: Case): Promise<Figures> {
  const [loaded, called]: [number[], number[]] = [[], []];
  const paths = Array.from({ length: 199 }, (_, i) => {
    const number = Math.floor((i / 199) * tables);
    return `/v1/table/bench$t${String(number).padStart(7, "0")}/describe`;
  });
  for (let round = 0; round < rounds; round++) {
    const gateway = await startPackage("--root", root, "--workers", String(workers), "--no-maintenance");
    try {
      const mib = () => Math.round(residentBytes(gateway.pid) / 2 ** 20);
      const load = (seconds: number) =>
        runLightLoad({
          port: gateway.port,
          method: "POST",
          paths,
          body: "{}",
          connections: CONNECTIONS,
          seconds,
        });
      // The first answers come when the rows have been read.
      await load(0.5);
      await sleep(REST_MS);
      loaded.push(mib());
      await load(SECONDS);
      await sleep(REST_MS);
      called.push(mib());
    } finally {
      await gateway.stop();
    }
  }
  return { loaded: roundsOf(loaded), called: roundsOf(called) };
}
