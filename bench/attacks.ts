// Measures the effect of attacks on a gateway: each attack runs in its own process against its own gateway, which a
// probe watches. npm run bench -- attacks [NAME ...]
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { type Aftermath, watchAftermath } from "./attacks/aftermath.ts";
import { WORDS } from "./attacks/attack.ts";
import { type LoopTimes, watchLoop } from "./attacks/loop.ts";
import { type ProbeRequest, type ProbeTimes, startProbe } from "./attacks/probe.ts";
import { noiseStream } from "./attacks/rows.ts";
import { ATTACKS } from "./attacks/table.ts";
import { send } from "./data/client.ts";
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

/** Duration for which a running attack is watched, in milliseconds. */
const WATCH_MS = 10_000;
/** Maximum time until an attack is in flight, in milliseconds: a victim that defends itself slows it down. */
const LAUNCH_MS = 30_000;

/** Runs all attacks, or the named ones, and prints a table in Markdown. */
export async function run(names: readonly string[]): Promise<void> {
  const unknown = names.find((name) => ATTACKS[name] === undefined);
  if (unknown !== undefined) throw new Error(`there is no attack ${unknown}, only ${Object.keys(ATTACKS)}`);
  const body = Buffer.from(noiseStream(60 * MIB));
  const bare = await startServer("attacks/bare.ts");
  console.log(
    "| Attack | peak memory | probe p50 | p99 | longest | work | bare p99 | longest | attacked bare longest | loop's longest delay | CPU | without a core | no answer | another's read p50 | longest | no answer | busy after the end | computing after 2 s | alive |",
  );
  console.log(`| --- ${"| --- ".repeat(18)}|`);
  for (const name of names.length > 0 ? names : Object.keys(ATTACKS)) {
    const { peakBytes, probe, beside, read, loop, aftermath, alive } = await suffer(name, body, bare);
    const attackedBare = ATTACKS[name]?.isFlood === true ? await sufferBare(name) : undefined;
    const times = [probe.p50, probe.p99, probe.max, probe.work, beside.p99, beside.max];
    const cells = [
      ATTACKS[name]?.title,
      `${Math.round(peakBytes / MIB)} MiB`,
      ...times.map((ms) => `${ms.toFixed(1)} ms`),
      attackedBare === undefined ? "" : `${attackedBare.max.toFixed(1)} ms`,
      `${loop.longestDelay.toFixed(1)} ms`,
      ...[loop.cpu, loop.withoutCore].map((ms) => `${(ms / 10).toFixed(0)} %`),
      probe.failed,
      ...[read.p50, read.max].map((ms) => `${ms.toFixed(1)} ms`),
      read.failed,
      ...[aftermath.busySeconds, aftermath.lateSeconds].map((seconds) => `${seconds.toFixed(1)} s`),
      alive ? "yes" : "**no**",
    ];
    console.log(`| ${cells.join(" | ")} |`);
  }
  await bare.stop();
}

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
async function attack(name: string, { port }: ServerProcess): Promise<ChildProcess> {
  const program = join(import.meta.dirname, "attacks", "attacker.ts");
  const attacker = spawn(process.execPath, [program, name, String(port), TABLE], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  const underWay = new Promise((resolve) =>
    createInterface({ input: attacker.stdout }).once("line", resolve),
  );
  await Promise.race([underWay, sleep(LAUNCH_MS)]);
  await sleep(WATCH_MS);
  return attacker;
}

/** Returns the response times of a server of node alone under the same attack: what of the gateway's is node's. */
async function sufferBare(name: string): Promise<ProbeTimes> {
  const server = await startServer("attacks/bare.ts");
  try {
    const probe = startProbe(server);
    const attacker = await attack(name, server);
    const times = await probe.end();
    attacker.kill("SIGKILL");
    return times;
  } finally {
    await server.stop();
  }
}

async function suffer(name: string, body: Buffer, bare: ServerProcess): Promise<Outcome> {
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
    const attacker = await attack(name, gateway);
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
