// The cores: compares one worker with two, on equal roots and with equal requests, in turn. A load generator that only
// writes prepared bytes takes the rest of the machine, so besides the rate it measures the computing time of a call.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create, toBinary } from "@bufbuild/protobuf";
import { DescribeTableRequestSchema } from "../src/gen/lance/namespace/v1/table_pb.ts";
import { people, personStream } from "../test/support/arrow.ts";
import { send } from "./data/client.ts";
import { computedSeconds } from "./support/cpu.ts";
import { runGrpcLoad } from "./support/grpc-load.ts";
import { runLightLoad } from "./support/light-load.ts";
import { residentBytes } from "./support/memory.ts";
import { type ServerProcess, startGateway } from "./support/process.ts";
import { type Rounds, roundsOf, writeResult } from "./support/result-file.ts";

const WORKERS = [1, 2] as const;
const TABLES = 1_000;
const ROUNDS = 5;
const SECONDS = 2;
const CONNECTIONS = 32;

/** Names for a round of declares, more than a gateway can use up. */
const MAX_DECLARES = 20_000 * SECONDS;
let declared = 0;

/** Runs a load on a port for some seconds; returns the calls per second. */
type Work = (port: number, seconds: number) => Promise<number>;

const tablePath = (operation: string) => (_: unknown, number: number) =>
  `/v1/table/bench$t${number % TABLES}/${operation}`;

const rest =
  (method: "GET" | "POST", path: (_: unknown, number: number) => string): Work =>
  (port, seconds) => {
    const paths = Array.from({ length: 199 }, path);
    return runLightLoad({ port, method, paths, body: "{}", connections: CONNECTIONS, seconds });
  };

const WORK: Readonly<Record<string, Work>> = {
  "describe, REST": rest("POST", tablePath("describe")),
  "exists, REST": rest("POST", tablePath("exists")),
  "list a page of 100, REST": rest("GET", (_, number) => {
    return `/v1/namespace/bench/table/list?limit=100&page_token=t${number * 3}`;
  }),
  "count rows, REST": rest("POST", () => "/v1/table/rows/count_rows"),
  "declare, REST": (port, seconds) => {
    const names = Array.from({ length: MAX_DECLARES }, () => `/v1/table/bench$new${declared++}/declare`);
    return runLightLoad({
      port,
      method: "POST",
      paths: names,
      body: "{}",
      connections: 2 * CONNECTIONS,
      seconds,
    });
  },
  "describe, gRPC": (port, seconds) =>
    runGrpcLoad({
      port,
      path: "/lance.namespace.v1.LanceNamespaceService/DescribeTable",
      message: toBinary(
        DescribeTableRequestSchema,
        create(DescribeTableRequestSchema, { id: ["bench", "t7"] }),
      ),
      concurrency: 4,
      connections: CONNECTIONS,
      seconds,
    }),
};

/** Figures of a number of workers under a load. */
interface Figures {
  /** Calls per second. */
  readonly rate: Rounds;
  /** Computing time of the gateway for a call, in microseconds. */
  readonly cpuMicros: Rounds;
  /** Share of a core that the load generator takes; near 1 it limits the rate. */
  readonly generatorShare: Rounds;
}

/** Runs the comparison; takes no options. */
export async function run(): Promise<void> {
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
      work[title] = await compareWorkers(gateways, load);
      print(title, work[title]);
    }
    const residentMiB = Object.fromEntries(
      WORKERS.map((workers, index) => [
        workers,
        Math.round(residentBytes(gateways[index]?.pid ?? 0) / 2 ** 20),
      ]),
    );
    console.log("\nresident memory, MiB", residentMiB);
    await writeResult("cores", { seconds: SECONDS, connections: CONNECTIONS, work, residentMiB });
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

async function compareWorkers(
  gateways: readonly ServerProcess[],
  load: Work,
): Promise<Record<string, Figures>> {
  const rates = WORKERS.map((): number[] => []);
  const micros = WORKERS.map((): number[] => []);
  const shares = WORKERS.map((): number[] => []);
  // A gateway runs for days, so the compilation in the first seconds does not count.
  for (const { port } of gateways) await load(port, SECONDS);
  for (let round = 0; round < ROUNDS; round++) {
    for (const [index, { port, pid }] of gateways.entries()) {
      const [before, ownBefore] = [computedSeconds(pid), computedSeconds(process.pid)];
      const started = performance.now();
      const rate = await load(port, SECONDS);
      const elapsed = (performance.now() - started) / 1000;
      const calls = rate * elapsed;
      shares[index]?.push(Number(((computedSeconds(process.pid) - ownBefore) / elapsed).toFixed(2)));
      rates[index]?.push(Math.round(rate));
      micros[index]?.push(Number((((computedSeconds(pid) - before) * 1e6) / calls).toFixed(1)));
    }
  }
  const entries = WORKERS.map((workers, index) => [
    workers,
    {
      rate: roundsOf(rates[index] ?? []),
      cpuMicros: roundsOf(micros[index] ?? []),
      generatorShare: roundsOf(shares[index] ?? []),
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
    `${title}: ${one.rate.median} → ${two.rate.median}/s (${times} ×), CPU ${one.cpuMicros.median} → ${two.cpuMicros.median} µs (${more} %)`,
  );
}
