// Measures the effect of attacks on a gateway: each attack runs in its own process against its own gateway, which a
// probe watches. npm run bench -- attacks [NAME ...]
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { type Aftermath, watchAftermath } from "./attacks/aftermath.ts";
import { WORDS } from "./attacks/attack.ts";
import { type LoopTimes, watchLoop } from "./attacks/loop.ts";
import { type ProbeRequest, type ProbeTimes, startProbe } from "./attacks/probe.ts";
import { noiseStream } from "./attacks/rows.ts";
import { ATTACKS } from "./attacks/table.ts";
import { send } from "./data/client.ts";
import { type Figures, startFigures } from "./support/figures.ts";
import { watchMemory } from "./support/memory.ts";
import { type ServerProcess, startGateway, startServer } from "./support/process.ts";

const MIB = 1024 * 1024;
const TABLE = "victim";

/** A small read by another caller than the attacker. */
const READ: ProbeRequest = {
  path: `/v1/table/${TABLE}/query`,
  body: JSON.stringify({ k: 1, vector: {} }),
  localAddress: "127.0.0.2",
  everyMs: 100,
};

const USAGE = {
  /** Duration for which a running attack is watched. */
  seconds: { type: "string", default: "10" },
} as const;

/** Goals: the longest probe, the longest read of another caller, how long the gateway is busy after the end, and the memory of results. */
const [PROBE_MS, READ_MS, LATE_SECONDS, RESULTS_MIB] = [100, 1_000, 2, 600];
/** Maximum time until an attack is in flight, in milliseconds: a victim that defends itself slows it down. */
const LAUNCH_MS = 30_000;

/** Runs all attacks, or the named ones: `[NAME ...] [--seconds NUMBER]`. */
export async function run(args: readonly string[]): Promise<Figures[]> {
  const { values, positionals } = parseArgs({ args: [...args], options: USAGE, allowPositionals: true });
  const unknown = positionals.find((name) => ATTACKS[name] === undefined);
  if (unknown !== undefined) throw new Error(`there is no attack ${unknown}, only ${Object.keys(ATTACKS)}`);
  const watchMs = Number(values.seconds) * 1_000;
  const body = Buffer.from(noiseStream(60 * MIB));
  const bare = await startServer("attacks/bare.ts");
  const figures = startFigures(
    ...["attack", "peak memory, MiB", "probe p99, ms", "longest", "CPU while it waited, ms"],
    ...["bare server: longest", "attacked bare server: longest", "loop's longest delay, ms", "CPU, %"],
    ...["another's longest read, ms", "no answer", "busy after the end, s", "alive"],
  );
  try {
    for (const name of positionals.length > 0 ? positionals : Object.keys(ATTACKS)) {
      const { peakBytes, probe, beside, read, loop, aftermath, alive } = await suffer(
        name,
        body,
        bare,
        watchMs,
      );
      const attackedBare = ATTACKS[name]?.isFlood === true ? (await sufferBare(name, watchMs)).max : "";
      const memory = Math.round(peakBytes / MIB);
      const results = RESULTS.includes(name) ? [{ of: memory, most: RESULTS_MIB, unit: "MiB" }] : [];
      figures.add(
        [
          ...[ATTACKS[name]?.title ?? name, memory, probe.p99, probe.max, probe.work, beside.max],
          ...[attackedBare, loop.longestDelay, loop.cpu / 10, read.max, probe.failed + read.failed],
          ...[aftermath.busySeconds, alive ? "yes" : "**no**"],
        ],
        { of: probe.max, most: PROBE_MS, unit: "ms" },
        { of: read.max, most: READ_MS, unit: "ms" },
        { of: aftermath.busySeconds, most: LATE_SECONDS, unit: "s" },
        ...results,
      );
    }
    return [figures];
  } finally {
    await bare.stop();
  }
}

/** Attacks whose results the gateway holds. */
const RESULTS = ["unread-rest", "unread-grpc", "unread-connect", "abandoned"];

interface Outcome {
  readonly peakBytes: number;
  readonly probe: ProbeTimes;
  /** The response times of a second server that nobody attacks. */
  readonly beside: ProbeTimes;
  /** The response times of another caller's small read. */
  readonly read: ProbeTimes;
  readonly loop: LoopTimes;
  readonly aftermath: Aftermath;
  readonly alive: boolean;
}

/** Starts an attack, and resolves when it has lasted for the time that it is watched. */
async function attack(name: string, { port }: ServerProcess, watchMs: number): Promise<ChildProcess> {
  const program = join(import.meta.dirname, "attacks", "attacker.ts");
  const attacker = spawn(process.execPath, [program, name, String(port), TABLE], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  const underWay = new Promise((resolve) =>
    createInterface({ input: attacker.stdout }).once("line", resolve),
  );
  await Promise.race([underWay, sleep(LAUNCH_MS)]);
  await sleep(watchMs);
  return attacker;
}

/** Returns the response times of a server of node alone under the same attack: what of the gateway's is node's. */
async function sufferBare(name: string, watchMs: number): Promise<ProbeTimes> {
  const server = await startServer("attacks/bare.ts");
  try {
    const probe = startProbe(server);
    const attacker = await attack(name, server, watchMs);
    const times = await probe.end();
    attacker.kill("SIGKILL");
    return times;
  } finally {
    await server.stop();
  }
}

async function suffer(name: string, body: Buffer, bare: ServerProcess, watchMs: number): Promise<Outcome> {
  const root = await mkdtemp(join(tmpdir(), "lance-gateway-bench-"));
  const writer = await startGateway("--root", root);
  await send(writer.port, `table/${TABLE}/create`, body);
  if (ATTACKS[name]?.searchesWords)
    await send(writer.port, `table/${TABLE}/create_index`, { column: WORDS, index_type: "FTS" });
  await writer.stop();
  // A new process, so that no memory of the table's creation counts for the attack.
  const gateway = await startGateway("--root", root);
  try {
    await send(gateway.port, `table/${TABLE}/query`, { k: 10, vector: {} });
    const memory = watchMemory(gateway.pid);
    const loop = await watchLoop(gateway);
    const [probe, beside, read] = [startProbe(gateway), startProbe(bare), startProbe(gateway, READ)];
    const attacker = await attack(name, gateway, watchMs);
    const peakBytes = memory.peak();
    const [times, besideTimes, readTimes, loopTimes] = await Promise.all([
      probe.end(),
      beside.end(),
      read.end(),
      loop.end(),
    ]);
    attacker.kill("SIGKILL");
    const aftermath = await watchAftermath(gateway.pid);
    return {
      peakBytes,
      probe: times,
      beside: besideTimes,
      read: readTimes,
      loop: loopTimes,
      aftermath,
      alive: gateway.alive(),
    };
  } finally {
    await gateway.stop();
    await rm(root, { recursive: true, force: true });
  }
}
