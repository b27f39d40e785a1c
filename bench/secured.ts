// The cost of security: describe on equal roots with more and more of it, in turn; and the times of a caller while another floods.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import autocannon from "autocannon";
import { drawKey, type NewKey } from "../src/auth/api-keys/key.ts";
import { computedSeconds } from "./support/cpu.ts";
import { runLightLoad } from "./support/light-load.ts";
import { type ServerProcess, startGateway } from "./support/process.ts";
import { figureOf } from "./support/results.ts";

const ROUNDS = 5;
const SECONDS = 2;
const CONNECTIONS = 32;
const TABLES = 100;
const PATHS = Array.from({ length: TABLES }, (_, number) => `/v1/table/t${number}/describe`);

/** Runs the comparison; takes no options. */
export async function run(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "lance-gateway-bench-"));
  const keys = join(folder, "keys.json");
  const [flooder, quiet] = [drawKey(), drawKey()];
  await writeFile(keys, JSON.stringify({ keys: [recordOf(flooder, "flooder"), recordOf(quiet, "quiet")] }));
  const auth = ["--auth", "api-key", "--api-keys-file", keys];
  const audit = (name: string) => ["--audit-log", join(folder, `${name}.jsonl`)];
  const limits = [
    "--rate-limit",
    "principal=1000000",
    "--rate-limit",
    "address=1000000",
    "--rate-limit",
    "total=1000000",
  ];
  const sides: Readonly<Record<string, readonly string[]>> = {
    open: [],
    "audit log": audit("audit"),
    keys: auth,
    "keys, rate limits": [...auth, ...limits],
    "keys, rate limits, audit log required": [...auth, ...limits, ...audit("required"), "--audit-required"],
  };
  const servers: ServerProcess[] = [];
  const start = async (name: string, args: readonly string[]) => {
    const server = await startGateway("--root", join(folder, name.replaceAll(/\W/g, "-")), ...args);
    servers.push(server);
    const headers: Readonly<Record<string, string>> = args.includes("--auth")
      ? { "x-api-key": quiet.text }
      : {};
    for (const path of PATHS) await post(server.port, path.replace("describe", "declare"), headers);
    return { port: server.port, pid: server.pid, headers };
  };
  try {
    const targets = [];
    for (const [name, args] of Object.entries(sides)) targets.push({ name, ...(await start(name, args)) });
    await compareSides(targets);
    for (const server of servers.splice(0)) await server.stop();
    const { port } = await start("flood", [...auth, "--rate-limit", "principal=500"]);
    await compareFlood(port, flooder, quiet);
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
    await rm(folder, { recursive: true, force: true });
  }
}

/** A gateway, and the headers of calls to it. */
interface Target {
  readonly name: string;
  readonly port: number;
  readonly pid: number;
  readonly headers: Readonly<Record<string, string>>;
}

/** Prints the rate of each side, and the computing time of a call, which depends less on what else the machine does. */
async function compareSides(targets: readonly Target[]): Promise<void> {
  const load = {
    method: "POST",
    paths: PATHS,
    body: "{}",
    connections: CONNECTIONS,
    seconds: SECONDS,
  } as const;
  const rates = targets.map((): number[] => []);
  const micros = targets.map((): number[] => []);
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [index, { port, pid, headers }] of targets.entries()) {
      const before = computedSeconds(pid);
      const rate = await runLightLoad({ ...load, port, headers });
      // The first round is for the compiler.
      if (round === 0) continue;
      rates[index]?.push(Math.round(rate));
      micros[index]?.push(Math.round(((computedSeconds(pid) - before) * 1e6) / (rate * SECONDS)));
    }
  }
  console.log(`\ndescribe, REST, ${CONNECTIONS} connections: median (least to most) of ${ROUNDS} rounds`);
  for (const [index, { name }] of targets.entries()) {
    const [rate, cpu] = [figureOf(rates[index] ?? []), figureOf(micros[index] ?? [])];
    console.log(
      `  ${name}: ${rate.median} calls/s (${rate.least} to ${rate.most}), ${cpu.median} µs of computing (${cpu.least} to ${cpu.most})`,
    );
  }
}

function recordOf({ id, hash }: NewKey, name: string) {
  return { id, hash, name, role: "owner", created: new Date().toISOString() };
}

async function post(port: number, path: string, headers: Readonly<Record<string, string>>): Promise<number> {
  const init = { method: "POST", headers: { ...headers, "content-type": "application/json" }, body: "{}" };
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, init);
  await answer.arrayBuffer();
  return answer.status;
}

/** Prints the times of a caller that calls 200 times a second, alone and while another one sends what its connections take. */
async function compareFlood(port: number, flooder: NewKey, quiet: NewKey): Promise<void> {
  const times = () =>
    autocannon({
      url: `http://127.0.0.1:${port}${PATHS[0]}`,
      method: "POST",
      body: "{}",
      headers: { "content-type": "application/json", "x-api-key": quiet.text },
      connections: 2,
      overallRate: 200,
      duration: 5,
    });
  await times();
  console.log("\ndescribe of a quiet caller, milliseconds");
  for (let round = 0; round < 3; round++) {
    const alone = await times();
    const flood = autocannon({
      url: `http://127.0.0.1:${port}${PATHS[0]}`,
      method: "POST",
      body: "{}",
      headers: { "content-type": "application/json", "x-api-key": flooder.text },
      connections: 64,
      workers: 1,
      duration: 7,
    });
    const beside = await times();
    const { requests, non2xx } = await flood;
    console.log(
      `  alone p50 ${alone.latency.p50} p99 ${alone.latency.p99}, beside a flood p50 ${beside.latency.p50} p99 ${beside.latency.p99}, ${beside.non2xx} refused; the flood: ${requests.total} calls, ${non2xx} refused`,
    );
  }
}
