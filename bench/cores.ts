// The cores: compares one worker with two, on equal roots and with equal requests, in turn. The load generator takes the rest
// of the machine, so besides the rate it measures the computing time of a call, for the gateway and for the generator.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { people, personStream } from "../test/support/arrow.ts";
import { CONNECTIONS, TABLES, WORK, type Work } from "./cores/work.ts";
import { send } from "./data/client.ts";
import { computedSeconds, ownSeconds } from "./support/cpu.ts";
import { residentBytes } from "./support/memory.ts";
import { type ServerProcess, startGateway } from "./support/process.ts";
import { keepResults, type Rounds, roundsOf } from "./support/results.ts";

const WORKERS = [1, 2] as const;
const SECONDS = 2;
/**
 * Calls that each worker answers before the measured ones: V8 compiles the code of a kind of call for as long, and a gateway runs for days. A load
 * that is slower than that gets {@link MOST_WARM_SECONDS}.
 */
const WARM_CALLS = 200_000;
const MOST_WARM_SECONDS = 20;

const USAGE = { rounds: { type: "string", default: "5" } } as const;

/** Figures of a number of workers under a load. */
interface Figures {
  /** Calls per second. */
  readonly rate: Rounds;
  /** Computing time of the gateway for a call, in microseconds. */
  readonly cpuMicros: Rounds;
  /** Computing time of the load generator for a call, in microseconds. */
  readonly generatorMicros: Rounds;
}

/** Runs the comparison: `[--rounds NUMBER]`. */
export async function run(args: readonly string[]): Promise<void> {
  const rounds = Number(parseArgs({ args: [...args], options: USAGE }).values.rounds);
  const folder = await mkdtemp(join(tmpdir(), "lance-gateway-bench-"));
  const gateways: ServerProcess[] = [];
  try {
    for (const workers of WORKERS) {
      const root = join(folder, String(workers));
      const gateway = await startGateway("--root", root, "--workers", String(workers));
      gateways.push(gateway);
      await fill(gateway.port);
    }
    const work: Record<string, Record<string, Figures>> = {};
    for (const [title, load] of Object.entries(WORK)) {
      work[title] = await compareWorkers(gateways, load, rounds);
      print(title, work[title]);
    }
    const residentMiB = Object.fromEntries(
      WORKERS.map((workers, index) => [
        workers,
        Math.round(residentBytes(gateways[index]?.pid ?? 0) / 2 ** 20),
      ]),
    );
    console.log("\nresident memory, MiB", residentMiB);
    keepResults("cores", { seconds: SECONDS, connections: CONNECTIONS, work, residentMiB });
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

async function warm(port: number, load: Work, workers: number): Promise<void> {
  let [calls, seconds] = [0, 0];
  for (; calls < WARM_CALLS * workers && seconds < MOST_WARM_SECONDS; seconds += SECONDS)
    calls += (await load(port, SECONDS)).answers;
}

async function compareWorkers(
  gateways: readonly ServerProcess[],
  load: Work,
  rounds: number,
): Promise<Record<string, Figures>> {
  const rates = WORKERS.map((): number[] => []);
  const micros = WORKERS.map((): number[] => []);
  const generator = WORKERS.map((): number[] => []);
  const perCall = (computed: number, answers: number) => Number(((computed * 1e6) / answers).toFixed(1));
  for (const [index, { port }] of gateways.entries()) await warm(port, load, WORKERS[index] ?? 1);
  for (let round = 0; round < rounds; round++) {
    for (const [index, { port, pid }] of gateways.entries()) {
      const [before, ownBefore] = [computedSeconds(pid), ownSeconds()];
      const { rate, answers } = await load(port, SECONDS);
      rates[index]?.push(Math.round(rate));
      micros[index]?.push(perCall(computedSeconds(pid) - before, answers));
      generator[index]?.push(perCall(ownSeconds() - ownBefore, answers));
    }
  }
  const entries = WORKERS.map((workers, index) => [
    workers,
    {
      rate: roundsOf(rates[index] ?? []),
      cpuMicros: roundsOf(micros[index] ?? []),
      generatorMicros: roundsOf(generator[index] ?? []),
    },
  ]);
  return Object.fromEntries(entries);
}

function print(title: string, figures: Record<string, Figures>): void {
  const [one, two] = WORKERS.map((workers) => figures[workers] as Figures);
  if (one === undefined || two === undefined) return;
  const times = (two.rate.median / one.rate.median).toFixed(2);
  const more = ((two.cpuMicros.median / one.cpuMicros.median - 1) * 100).toFixed(0);
  console.log(
    `${title}: ${one.rate.median} → ${two.rate.median}/s (${times} ×), CPU ${one.cpuMicros.median} → ${two.cpuMicros.median} µs (${more} %), generator ${one.generatorMicros.median} → ${two.generatorMicros.median} µs`,
  );
}
