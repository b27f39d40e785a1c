// Arrow Flight beside pyarrow's own server: DoPut and DoGet of the same table by the same client, in turns, and `SELECT 1` through
// ADBC, which pyarrow's answers with a constant: the least that it can take. Both servers are processes of their own; pyarrow's keeps the table in memory, the gateway stores it.
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs, promisify } from "node:util";
import { pythonInterpreter } from "../scripts/python-environment.ts";
import { watchMemory } from "./support/memory.ts";
import { startGateway, startProcess } from "./support/process.ts";
import { roundsOf, writeResults } from "./support/results.ts";

const PEER = join(import.meta.dirname, "flight", "peer.py");

/** Rates in MB/s, by the address of the server. */
type Rates = Readonly<Record<string, { readonly put: number[]; readonly get: number[] }>>;

/** Times of a statement, in milliseconds. */
interface Select {
  readonly least: number;
  readonly p50: number;
}

/** Runs the comparison: `[--size MEBIBYTES] [--rounds NUMBER] [--statements NUMBER]`. */
export async function run(args: readonly string[]): Promise<void> {
  const options = {
    size: { type: "string", default: "1024" },
    rounds: { type: "string", default: "3" },
    statements: { type: "string", default: "500" },
  } as const;
  const { size, rounds, statements } = parseArgs({ args: [...args], options }).values;
  const python = pythonInterpreter();
  const root = await mkdtemp(join(tmpdir(), "lance-gateway-bench-"));
  const peer = await startProcess([python, PEER, "serve"], /^(\d+)$/);
  const gateway = await startGateway("--root", root, "--max-upload-size", "4GiB");
  try {
    const [own, other] = [`127.0.0.1:${gateway.port}`, `127.0.0.1:${peer.port}`];
    const ask = async (...command: readonly string[]) =>
      JSON.parse((await promisify(execFile)(python, [PEER, ...command])).stdout);
    const memory = watchMemory(gateway.pid);
    const rates: Rates = await ask("rows", size, rounds, own, other);
    const peakMiB = memory.peak() / 2 ** 20;
    const selects: Readonly<Record<string, Select>> = await ask("select", statements, own, other);
    const selectMs = { gateway: selects[own] as Select, constant: selects[other] as Select };
    const figures = { gateway: rates[own], pyarrow: rates[other] };
    for (const [name, { put, get }] of Object.entries(figures) as [string, Rates[string]][])
      console.log(`${name}: DoPut ${text(put)} MB/s, DoGet ${text(get)} MB/s`);
    console.log(`gateway: peak memory ${Math.round(peakMiB)} MiB`);
    for (const [name, { p50, least }] of Object.entries(selectMs))
      console.log(`SELECT 1 by ADBC, ${name}: p50 ${p50.toFixed(2)} ms, least ${least.toFixed(2)} ms`);
    console.log(`load average: ${loadavg()[0]?.toFixed(1)}`);
    writeResults("flight", { sizeMiB: Number(size), ratesMBps: figures, peakMiB, selectMs, load: loadavg() });
  } finally {
    await Promise.all([gateway.stop(), peer.stop()]);
    await rm(root, { recursive: true, force: true });
  }
}

function text(rates: readonly number[]): string {
  const { median, min, max } = roundsOf(rates);
  return `${Math.round(median)} (${Math.round(min)}–${Math.round(max)})`;
}
