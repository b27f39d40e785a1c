// The cores: compares one worker with two, on equal roots and with equal requests, in turn. The load generator takes the rest
// of the machine, so besides the rate it measures the computing time of a call, for the gateway and for the generator.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { people, personStream } from "../test/support/arrow.ts";
import { TABLES, WORK, type Work } from "./cores/work.ts";
import { send } from "./data/client.ts";
import { computedSeconds, ownSeconds } from "./support/cpu.ts";
import { type Figures, startFigures } from "./support/figures.ts";
import { residentBytes } from "./support/memory.ts";
import { type ServerProcess, startGateway } from "./support/process.ts";
import { type Rounds, roundsOf, timesOf } from "./support/results.ts";

const WORKERS = [1, 2] as const;
const SECONDS = 2;
/**
 * Calls that each worker answers before the measured ones: V8 compiles the code of a kind of call for as long, and a gateway runs for days. A load
 * that is slower than that gets the seconds of `--warm`.
 */
const WARM_CALLS = 200_000;
const MOST_WARM_SECONDS = "20";

const USAGE = {
  rounds: { type: "string", default: "5" },
  /** Maximum time for which a worker is warmed up by a kind of call. */
  warm: { type: "string", default: MOST_WARM_SECONDS },
} as const;

/** The least multiple of one worker's rate, and the most of its computing time, that two have for reads. */
const [LEAST_RATE, MOST_COMPUTING] = [1.6, 1.08];

/** Figures of a number of workers under a load. */
interface Measured {
  /** Calls per second. */
  readonly rate: Rounds;
  /** Computing time of the gateway for a call, in microseconds. */
  readonly cpuMicros: Rounds;
  /** Computing time of the load generator for a call, in microseconds. */
  readonly generatorMicros: Rounds;
}

/** Runs the comparison: `[--rounds NUMBER] [--warm SECONDS]`. */
export async function run(args: readonly string[]): Promise<Figures[]> {
  const { values } = parseArgs({ args: [...args], options: USAGE });
  const [rounds, warmSeconds] = [values.rounds, values.warm].map(Number) as [number, number];
  const folder = await mkdtemp(join(tmpdir(), "lance-gateway-bench-"));
  const gateways: ServerProcess[] = [];
  try {
    for (const workers of WORKERS) {
      const root = join(folder, String(workers));
      const gateway = await startGateway("--root", root, "--workers", String(workers));
      gateways.push(gateway);
      await fill(gateway.port);
    }
    const figures = startFigures(
      ...["calls", "1 worker, /s", "2 workers, /s", "rate, ×", "1 worker, µs of CPU", "2 workers, µs of CPU"],
      ...["CPU, ×", "generator, µs"],
    );
    for (const [title, load] of Object.entries(WORK)) {
      for (const [at, { port }] of gateways.entries()) await warm(port, load, WORKERS[at] ?? 1, warmSeconds);
      const [one, two] = await compareWorkers(gateways, load, rounds);
      if (one === undefined || two === undefined) throw new Error(`${title} was not measured`);
      const [rate, computing] = [timesOf(two.rate, one.rate), timesOf(two.cpuMicros, one.cpuMicros)];
      const goals = [
        { of: rate.median, least: LEAST_RATE, unit: "× the rate" },
        { of: computing.median, most: MOST_COMPUTING, unit: "× the CPU" },
      ];
      figures.add(
        [
          ...[title, one.rate, two.rate, rate.median, one.cpuMicros, two.cpuMicros],
          ...[computing.median, two.generatorMicros.median],
        ],
        ...(title.startsWith("declare") ? [] : goals),
      );
    }
    const resident = startFigures("resident memory after the calls", "MiB");
    for (const [at, { pid }] of gateways.entries())
      resident.add([
        at === 0 ? "1 worker" : `${WORKERS[at]} workers`,
        Math.round(residentBytes(pid) / 2 ** 20),
      ]);
    return [figures, resident];
  } finally {
    await Promise.all(gateways.map((gateway) => gateway.stop()));
    await rm(folder, { recursive: true, force: true });
  }
}

async function fill(port: number): Promise<void> {
  await send(port, "namespace/bench/create", {});
  await send(port, "table/rows/create", Buffer.from(personStream(people(1_000))));
  const numbers = Array.from({ length: TABLES }, (_, number) => number);
  const declareRest = async (): Promise<void> => {
    for (let number = numbers.pop(); number !== undefined; number = numbers.pop()) {
      await send(port, `table/bench$t${number}/declare`, {});
    }
  };
  await Promise.all(Array.from({ length: 32 }, declareRest));
}

async function warm(port: number, load: Work, workers: number, most: number): Promise<void> {
  let [calls, seconds] = [0, 0];
  for (; calls < WARM_CALLS * workers && seconds < most; seconds += SECONDS)
    calls += (await load(port, SECONDS)).answers;
}

async function compareWorkers(
  gateways: readonly ServerProcess[],
  load: Work,
  rounds: number,
): Promise<Measured[]> {
  const rates = WORKERS.map((): number[] => []);
  const micros = WORKERS.map((): number[] => []);
  const generator = WORKERS.map((): number[] => []);
  const perCall = (computed: number, answers: number) => Number(((computed * 1e6) / answers).toFixed(1));
  for (let round = 0; round < rounds; round++) {
    for (const [index, { port, pid }] of gateways.entries()) {
      const [before, ownBefore] = [computedSeconds(pid), ownSeconds()];
      const { rate, answers } = await load(port, SECONDS);
      rates[index]?.push(Math.round(rate));
      micros[index]?.push(perCall(computedSeconds(pid) - before, answers));
      generator[index]?.push(perCall(ownSeconds() - ownBefore, answers));
    }
  }
  return WORKERS.map((_, index) => ({
    rate: roundsOf(rates[index] ?? []),
    cpuMicros: roundsOf(micros[index] ?? []),
    generatorMicros: roundsOf(generator[index] ?? []),
  }));
}
