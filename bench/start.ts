// The start of the built package: the time to the first answer of /readyz, and the memory of a process that has nothing to do, with an empty
// directory, with one of 1,000 tables, and in front of another catalog.
import { readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { addRows, namespaceRow, tableRows } from "./loop/roots.ts";
import { type Figures, startFigures } from "./support/figures.ts";
import { type ServerProcess, startPackage } from "./support/process.ts";
import { roundsOf } from "./support/results.ts";

const USAGE = { rounds: { type: "string", default: "7" } } as const;
/** Age at which the memory of a process is read, in milliseconds. */
const REST_MS = 11_000;
const TABLES = 1_000;

/** Goals: the time to the first answer in seconds, and the resident memory in MB of a directory and of a proxy. */
const [MOST_SECONDS, MOST_DIRECTORY, MOST_PROXY] = [0.5, 130, 100];

interface Case {
  readonly name: string;
  readonly options: readonly string[];
  readonly mostMegabytes: number;
  readonly seconds: number[];
  readonly resident: number[];
  readonly own: number[];
}

/** Runs the measurement: `[--rounds NUMBER]`. The gateways of a round start one after the other and rest at the same time. */
export async function run(args: readonly string[]): Promise<Figures[]> {
  const { rounds } = parseArgs({ args: [...args], options: USAGE }).values;
  const folder = await mkdtemp(join(tmpdir(), "lance-gateway-bench-"));
  const upstreams: ServerProcess[] = [];
  try {
    const root = (name: string) => ["--root", join(folder, name)];
    await mkdir(join(folder, "many"));
    await addRows(join(folder, "many"), [namespaceRow("bench"), ...tableRows("bench", TABLES)]);
    const upstream = await startPackage(...root("upstream"));
    upstreams.push(upstream);
    const rest = ["--backend", "rest", "--uri", `http://127.0.0.1:${upstream.port}`];
    const grpc = ["--backend", "grpc", "--address", `127.0.0.1:${upstream.port}`];
    const caseOf = (name: string, options: readonly string[], mostMegabytes: number): Case => ({
      ...{ name, options, mostMegabytes, seconds: [], resident: [], own: [] },
    });
    const cases = [
      caseOf("an empty directory", root("empty"), MOST_DIRECTORY),
      caseOf("a directory with 1,000 tables", root("many"), MOST_DIRECTORY),
      caseOf("in front of a REST catalog", rest, MOST_PROXY),
      caseOf("in front of a gRPC catalog", grpc, MOST_PROXY),
    ];
    for (let round = 0; round < Number(rounds); round += 1) await measure(cases);
    const figures = startFigures("start", "to /readyz, s", "resident, MB", "of it private, MB");
    for (const { name, mostMegabytes, seconds, resident, own } of cases) {
      const [start, memory] = [roundsOf(seconds), roundsOf(resident)];
      figures.add(
        [name, start, memory, roundsOf(own)],
        { of: start.median, most: MOST_SECONDS, unit: "s" },
        { of: memory.median, most: mostMegabytes, unit: "MB" },
      );
    }
    return [figures];
  } finally {
    await Promise.all(upstreams.map((upstream) => upstream.stop()));
    await rm(folder, { recursive: true, force: true });
  }
}

async function measure(cases: readonly Case[]): Promise<void> {
  const gateways: ServerProcess[] = [];
  try {
    for (const { options, seconds } of cases) {
      const started = performance.now();
      const gateway = await startPackage(...options);
      gateways.push(gateway);
      while (!(await fetch(`http://127.0.0.1:${gateway.port}/readyz`)).ok) await sleep(5);
      seconds.push((performance.now() - started) / 1_000);
    }
    await sleep(REST_MS);
    for (const [at, { resident, own }] of cases.entries()) {
      const rollup = readFileSync(`/proc/${gateways[at]?.pid}/smaps_rollup`, "utf8");
      const megabytes = (name: string) =>
        (Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(rollup)?.[1]) * 1_024) / 1e6;
      resident.push(megabytes("Rss"));
      own.push(megabytes("Private_Clean") + megabytes("Private_Dirty"));
    }
  } finally {
    await Promise.all(gateways.map((gateway) => gateway.stop()));
  }
}
