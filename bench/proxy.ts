// Compares the gateway in front of a REST upstream with the Rust REST adapter, a bare proxy on Node and nginx (where it
// is installed) in front of an equal upstream. Then it measures the time that the gateway adds to a call, and bodies of
// a gibibyte with the memory of its process.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pythonInterpreter } from "../scripts/python-environment.ts";
import { receive, upload } from "./proxy/bodies.ts";
import { startNginx } from "./proxy/nginx.ts";
import { runHttpLoad } from "./support/http-load.ts";
import { watchMemory } from "./support/memory.ts";
import { type ServerProcess, startGateway, startProcess, startServer } from "./support/process.ts";
import { compare, printStandings } from "./support/report.ts";

const PEER = join(import.meta.dirname, "proxy", "peer.py");
const SECONDS = 3;
const ROUNDS = 3;
const CALLS = 2_000;
const MIB = 1024 * 1024;
const GIB = 1024 * MIB;
/** The unit in which Linux counts the time of processes. */
const TICKS_PER_SECOND = 100;
/** Minimum computing time of a meaningful measurement, in seconds. */
const LEAST_SECONDS = 0.5;

const DESCRIBE = "/v1/table/demo$events/describe";
const BODY = '{"id":["demo","events"]}';

/** Runs the comparison; takes no options. */
export async function run(): Promise<void> {
  const upstream = await startServer("proxy/upstream.ts", String(GIB));
  const uri = `http://127.0.0.1:${upstream.port}`;
  const gateway = await startGateway("--backend", "rest", "--uri", uri);
  const adapter = await startProcess([pythonInterpreter(), PEER, uri], /^(\d+)$/);
  const bare = await startServer("proxy/bare.ts", uri);
  const nginx = await startNginx(upstream.port);
  try {
    const contestants = [
      { name: "gateway", server: gateway },
      { name: "Rust REST adapter", server: adapter },
      { name: "bare node:http and undici", server: bare },
      ...(nginx === undefined ? [] : [{ name: "nginx", server: nginx }]),
    ];
    // A proxy runs for days, so the compilation in the first seconds does not count.
    for (const { server } of contestants) for (let run = 0; run < 2; run += 1) await perCoreSecond(server);
    const standings = await compare(
      ROUNDS,
      contestants.map(({ name, server }) => ({ name, run: () => perCoreSecond(server) })),
    );
    printStandings("Describe through a proxy, 64 connections", "requests for a second of a core", standings);
    await printLatency(upstream, gateway);
    await printBodies(gateway);
  } finally {
    await Promise.all([gateway, adapter, bare, nginx, upstream].map((server) => server?.stop()));
  }
}

/** Returns the number of requests that a process would serve on a whole core: its requests per second of CPU time. */
async function perCoreSecond({ port, pid }: ServerProcess): Promise<number> {
  const load = {
    port,
    method: "POST",
    path: DESCRIBE,
    body: BODY,
    connections: 64,
    seconds: SECONDS,
  } as const;
  const before = computedSeconds(pid);
  const rate = await runHttpLoad(load);
  const computed = computedSeconds(pid) - before;
  if (computed < LEAST_SECONDS) throw new Error(`hardly anything was served: ${rate} requests/s`);
  return (rate * SECONDS) / computed;
}

function computedSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

async function printLatency(upstream: ServerProcess, gateway: ServerProcess): Promise<void> {
  await medianMs(gateway.port);
  const [direct, through] = [await medianMs(upstream.port), await medianMs(gateway.port)];
  console.log("\nThe time of a describe, 1 connection, p50");
  console.log(`  upstream ${direct.toFixed(3)} ms, through the gateway ${through.toFixed(3)} ms`);
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
