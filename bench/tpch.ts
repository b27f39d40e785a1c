// The queries of TPC-H through ADBC on the gateway, beside DuckDB on Parquet, in turn.
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs, promisify } from "node:util";
import { pythonInterpreter } from "../scripts/python-environment.ts";
import { type Figures, startFigures } from "./support/figures.ts";
import { startGateway } from "./support/process.ts";
import { roundsOf, timesOf } from "./support/results.ts";

const SESSION = join(import.meta.dirname, "..", "test", "clients", "python", "tpch_session.py");

const USAGE = {
  scale: { type: "string", default: "0.1" },
  rounds: { type: "string", default: "3" },
} as const;

/** The most that all queries take, as a multiple of DuckDB's time. */
const MOST_TIMES = 1.5;

/** Times of a query in each round, in milliseconds. */
interface QueryTimes {
  readonly query: number;
  readonly ours: readonly number[];
  readonly parquet: readonly number[];
}

/** Runs the comparison: `[--scale FACTOR] [--rounds NUMBER]`. The first two rounds read the tables and do not count. */
export async function run(args: readonly string[]): Promise<Figures[]> {
  const { scale, rounds } = parseArgs({ args: [...args], options: USAGE }).values;
  const root = await mkdtemp(join(tmpdir(), "lance-gateway-bench-"));
  const gateway = await startGateway("--root", root, "--max-upload-size", "4GiB");
  try {
    const count = Number(rounds);
    const command = [SESSION, `127.0.0.1:${gateway.port}`, scale, String(count + 2)];
    const { stdout } = await promisify(execFile)(pythonInterpreter(), command);
    const times = JSON.parse(stdout) as readonly QueryTimes[];
    const sums = (side: "ours" | "parquet") =>
      roundsOf(
        Array.from({ length: count }, (_, round) =>
          times.reduce((sum, query) => sum + (query[side][round + 2] ?? Number.NaN), 0),
        ),
      );
    const [ours, parquet] = [sums("ours"), sums("parquet")];
    const ratio = timesOf(ours, parquet);
    const title = `the ${times.length} queries at scale ${scale}, sum in ms`;
    const figures = startFigures("TPC-H", "through ADBC", "DuckDB on Parquet", "×");
    figures.add([title, ours, parquet, ratio], { of: ratio.median, most: MOST_TIMES, unit: "×" });
    return [figures];
  } finally {
    await gateway.stop();
    await rm(root, { recursive: true, force: true });
  }
}
