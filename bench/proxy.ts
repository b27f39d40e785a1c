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
import { runGrpcLoad } from "./support/grpc-load.ts";
import { runHttpLoad } from "./support/http-load.ts";
import { watchMemory } from "./support/memory.ts";
import { type ServerProcess, startGateway, startProcess, startServer } from "./support/process.ts";
import { keepResults, type Rounds, roundsOf } from "./support/results.ts";
import { DESCRIBE_PATH } from "./wires/answer.ts";

const PEER = join(import.meta.dirname, "proxy", "peer.py");
const SECONDS = 1;
/** Turns of a round, which counts the median one: the machine's speed changes within seconds. */
const TURNS = 6;
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

const USAGE = { rounds: { type: "string", default: "5" } } as const;

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

/** Runs the comparison: `[--rounds NUMBER]`. */
export async function run(args: readonly string[]): Promise<void> {
  const rounds = Number(parseArgs({ args: [...args], options: USAGE }).values.rounds);
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
    keepResults("proxy", {
      rest: await compare("REST to REST, 64 connections", rest, LOADS.rest, rounds),
      grpc: await compare("gRPC to gRPC, 4 connections with 16 calls at once", grpc, LOADS.grpc, rounds),
      latencyMs: await measureLatency(upstream, gateway, rounds),
    });
    await printBodies(gateway);
  } finally {
    const all = [upstream, grpcUpstream, ...Object.values(rest), ...Object.values(grpc)];
    await Promise.all(all.map((server) => server.stop()));
  }
}

/** Measures all servers in turn, and prints the calls for each second of a core. */
async function compare(
  title: string,
  servers: Contestants,
  load: Load,
  rounds: number,
): Promise<Record<string, Rounds>> {
  const all = Object.entries(servers).map(([name, server]) => ({ name, server, rates: [] as number[] }));
  for (const { server } of all) {
    for (let calls = 0; calls < WARM_CALLS; ) calls += SECONDS * (await load(server.port));
  }
  for (let round = 0; round < rounds; round += 1) {
    const turns = all.map(() => [] as number[]);
    for (let turn = 0; turn < TURNS; turn += 1) {
      for (const [at, { server }] of all.entries()) turns[at]?.push(await perCoreSecond(server, load));
    }
    for (const [at, { rates }] of all.entries()) rates.push(roundsOf(turns[at] ?? []).median);
  }
  const figures = Object.fromEntries(all.map(({ name, rates }) => [name, roundsOf(rates)]));
  const [first] = Object.values(figures);
  console.log(`\nDescribe, ${title}: calls for a second of a core, median (range)`);
  for (const [name, { median, min, max }] of Object.entries(figures)) {
    const [shown, from, to] = [median, min, max].map((rate) => Math.round(rate).toLocaleString("en"));
    const ratio = ((first?.median ?? Number.NaN) / median).toFixed(2);
    console.log(`  ${name.padEnd(26)} ${shown?.padStart(7)} (${from} to ${to}), the gateway is ${ratio} ×`);
  }
  return figures;
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
async function measureLatency(
  upstream: ServerProcess,
  gateway: ServerProcess,
  rounds: number,
): Promise<Record<"upstream" | "gateway" | "added", Rounds>> {
  await medianMs(gateway.port);
  const times: { direct: number; through: number }[] = [];
  for (let round = 0; round < rounds; round += 1) {
    times.push({ direct: await medianMs(upstream.port), through: await medianMs(gateway.port) });
  }
  const figures = {
    upstream: roundsOf(times.map(({ direct }) => direct)),
    gateway: roundsOf(times.map(({ through }) => through)),
    added: roundsOf(times.map(({ direct, through }) => through - direct)),
  };
  console.log("\nThe time of a describe, 1 connection, p50 in ms, median (range)");
  for (const [name, { median, min, max }] of Object.entries(figures)) {
    console.log(`  ${name.padEnd(8)} ${median.toFixed(3)} (${min.toFixed(3)} to ${max.toFixed(3)})`);
  }
  return figures;
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

async function printBodies({ port, pid }: ServerProcess): Promise<void> {
  console.log("\n1 GiB through the gateway");
  const work = {
    download: () => receive(port, "/v1/table/demo$events/query", '{"vector":{}}'),
    upload: () => upload(port, "/v1/table/demo$events/insert", GIB - MIB),
  };
  for (const [name, run] of Object.entries(work)) {
    const memory = watchMemory(pid);
    const started = performance.now();
    await run();
    const rate = GIB / MIB / ((performance.now() - started) / 1000);
    const grown = Math.round(memory.end() / MIB);
    console.log(
      `  ${name.padEnd(8)} ${Math.round(rate).toLocaleString("en").padStart(6)} MiB/s, memory +${grown} MiB`,
    );
  }
}
