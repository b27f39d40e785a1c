// Compares the gateway in front of an upstream with other proxies in front of an equal one: in front of a REST upstream
// with the Rust REST adapter, a bare proxy on Node and nginx (where it is installed), in front of a gRPC upstream with a
// bare proxy on grpc-js. Then it measures the time that the gateway adds to a call, and bodies of a gibibyte with the
// memory of its process.
import { join } from "node:path";
import { parseArgs } from "node:util";
import { create, toBinary } from "@bufbuild/protobuf";
import { pythonInterpreter } from "../scripts/python-environment.ts";
import { DescribeTableRequestSchema } from "../src/gen/lance/namespace/v1/table_pb.ts";
import { receive, upload } from "./proxy/bodies.ts";
import { startNginx } from "./proxy/nginx.ts";
import { computedSeconds } from "./support/cpu.ts";
import { addContest, type Figures, type FiguresInProgress, startFigures } from "./support/figures.ts";
import { runGrpcLoad } from "./support/grpc-load.ts";
import { runHttpLoad } from "./support/http-load.ts";
import { watchMemory } from "./support/memory.ts";
import { type ServerProcess, startGateway, startProcess, startServer } from "./support/process.ts";
import { type Rounds, roundsOf } from "./support/results.ts";
import { DESCRIBE_PATH } from "./wires/answer.ts";

const PEER = join(import.meta.dirname, "proxy", "peer.py");
const SECONDS = 1;
const CALLS = 2_000;
const MIB = 1024 * 1024;
const GIB = 1024 * MIB;
/**
 * Calls before the measured ones. A proxy runs for days; V8 compiles its code for about 60,000 calls, and a call of the gateway becomes
 * cheaper until the first full collection of its garbage, after about 400,000.
 */
const WARM_CALLS = 400_000;
/** Minimum computing time of a meaningful measurement, in seconds. */
const LEAST_SECONDS = 0.2;

const DESCRIBE = "/v1/table/demo$events/describe";
const BODY = '{"id":["demo","events"]}';
const MESSAGE = toBinary(
  DescribeTableRequestSchema,
  create(DescribeTableRequestSchema, { id: ["demo", "events"] }),
);

const USAGE = {
  rounds: { type: "string", default: "5" },
  /** Turns of a round, which counts the median one: the machine's speed changes within seconds. */
  turns: { type: "string", default: "6" },
  /** Calls before the measured ones. */
  warm: { type: "string", default: String(WARM_CALLS) },
  /** Leaves out the bodies of a gibibyte. */
  "no-bodies": { type: "boolean", default: false },
} as const;

/** The part of another server's calls that the gateway has to serve at least. */
const LEAST = { "Rust REST adapter": 1, "bare node:http and undici": 0.9, "bare @grpc/grpc-js": 0.8 };
const MOST_ADDED_MS = 0.2;

/** Puts load on a port for {@link SECONDS}; returns the calls per second. */
type Load = (port: number) => Promise<number>;

const LOADS = {
  rest: (port) =>
    runHttpLoad({ port, method: "POST", path: DESCRIBE, body: BODY, connections: 64, seconds: SECONDS }),
  grpc: (port) =>
    runGrpcLoad({
      port,
      path: DESCRIBE_PATH,
      message: MESSAGE,
      concurrency: 16,
      connections: 4,
      seconds: SECONDS,
    }),
} as const satisfies Record<string, Load>;

/** Servers by name; the gateway is the first. */
type Contestants = Readonly<Record<string, ServerProcess>>;

/** Runs the comparison: `[--rounds NUMBER] [--turns NUMBER] [--warm CALLS] [--no-bodies]`. */
export async function run(args: readonly string[]): Promise<Figures[]> {
  const { values } = parseArgs({ args: [...args], options: USAGE });
  const [rounds, turns, warm] = [values.rounds, values.turns, values.warm].map(Number) as [
    number,
    number,
    number,
  ];
  const upstream = await startServer("proxy/upstream.ts", String(GIB));
  const grpcUpstream = await startServer("wires/gateway.ts");
  const uri = `http://127.0.0.1:${upstream.port}`;
  const address = `127.0.0.1:${grpcUpstream.port}`;
  const gateway = await startGateway("--backend", "rest", "--uri", uri);
  const nginx = await startNginx(upstream.port);
  const rest: Contestants = {
    gateway,
    "Rust REST adapter": await startProcess([pythonInterpreter(), PEER, uri], /^(\d+)$/),
    "bare node:http and undici": await startServer("proxy/bare.ts", uri),
    ...(nginx !== undefined && { nginx }),
  };
  const grpc: Contestants = {
    gateway: await startGateway("--backend", "grpc", "--address", address),
    "bare @grpc/grpc-js": await startServer("proxy/bare-grpc.ts", address),
  };
  try {
    const rates = startFigures("describe", "calls per second of a core", "the gateway is, ×");
    const length = { rounds, turns, warm };
    addContest(rates, "REST to REST, 64 connections", await compare(rest, LOADS.rest, length), LEAST);
    const title = "gRPC to gRPC, 4 connections with 16 calls at once";
    addContest(rates, title, await compare(grpc, LOADS.grpc, length), LEAST);
    const latencies = startFigures(
      "a sequential describe, p50 in ms",
      "at the upstream",
      "through the gateway",
      "added",
    );
    await addLatency(latencies, upstream, gateway, rounds);
    return [rates, latencies, ...(values["no-bodies"] ? [] : [await measureBodies(gateway)])];
  } finally {
    const all = [upstream, grpcUpstream, ...Object.values(rest), ...Object.values(grpc)];
    await Promise.all(all.map((server) => server.stop()));
  }
}

interface Length {
  readonly rounds: number;
  readonly turns: number;
  readonly warm: number;
}

/** Measures the calls for each second of a core of all servers, in turn. */
async function compare(
  servers: Contestants,
  load: Load,
  { rounds, turns: count, warm }: Length,
): Promise<Record<string, Rounds>> {
  const all = Object.entries(servers).map(([name, server]) => ({ name, server, rates: [] as number[] }));
  for (const { server } of all) {
    for (let calls = 0; calls < warm; ) calls += SECONDS * (await load(server.port));
  }
  for (let round = 0; round < rounds; round += 1) {
    const turns = all.map(() => [] as number[]);
    for (let turn = 0; turn < count; turn += 1) {
      for (const [at, { server }] of all.entries()) turns[at]?.push(await perCoreSecond(server, load));
    }
    for (const [at, { rates }] of all.entries()) rates.push(roundsOf(turns[at] ?? []).median);
  }
  return Object.fromEntries(all.map(({ name, rates }) => [name, roundsOf(rates)]));
}

/** Returns the number of calls that a process would serve on a whole core: its calls per second of CPU time. */
async function perCoreSecond({ port, pid }: ServerProcess, load: Load): Promise<number> {
  const before = computedSeconds(pid);
  const rate = await load(port);
  const computed = computedSeconds(pid) - before;
  if (computed < LEAST_SECONDS) throw new Error(`hardly anything was served: ${rate} calls/s`);
  return (rate * SECONDS) / computed;
}

/** Measures sequential calls at the upstream and through the gateway, in turn: the median of each round. */
async function addLatency(
  figures: FiguresInProgress,
  upstream: ServerProcess,
  gateway: ServerProcess,
  rounds: number,
): Promise<void> {
  await medianMs(gateway.port);
  const times: { direct: number; through: number }[] = [];
  for (let round = 0; round < rounds; round += 1) {
    times.push({ direct: await medianMs(upstream.port), through: await medianMs(gateway.port) });
  }
  const added = roundsOf(times.map(({ direct, through }) => through - direct));
  const [at, through] = [times.map(({ direct }) => direct), times.map((time) => time.through)];
  figures.add(["over REST", roundsOf(at), roundsOf(through), added], {
    ...{ of: added.median, most: MOST_ADDED_MS, unit: "ms" },
  });
}

async function medianMs(port: number): Promise<number> {
  const times: number[] = [];
  for (let call = 0; call < CALLS; call += 1) {
    const started = performance.now();
    await receive(port, DESCRIBE, BODY);
    times.push(performance.now() - started);
  }
  return times.sort((a, b) => a - b)[CALLS / 2] as number;
}

async function measureBodies({ port, pid }: ServerProcess): Promise<Figures> {
  const figures = startFigures("1 GiB through the gateway", "MiB/s", "memory grows by at most, MiB");
  const work = {
    down: () => receive(port, "/v1/table/demo$events/query", '{"vector":{}}'),
    up: () => upload(port, "/v1/table/demo$events/insert", GIB - MIB),
  };
  for (const [name, run] of Object.entries(work)) {
    const memory = watchMemory(pid);
    const started = performance.now();
    await run();
    const rate = GIB / MIB / ((performance.now() - started) / 1000);
    const grown = Math.round(memory.end() / MIB);
    figures.add([name, rate, grown], { of: grown, most: 64, unit: "MiB" });
  }
  return figures;
}
