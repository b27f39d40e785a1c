import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NODE } from "../../test/support/node-command.ts";
import type { Figures } from "../support/figures.ts";

const BENCH = join(import.meta.dirname, "..");
const LOGS = join(BENCH, "..", ".cache", "bench", "report");

/** How a benchmark ended. */
export type Ending =
  | { readonly figures: readonly Figures[] }
  /** The reason for which it has no figures. */
  | { readonly failure: string };

/**
 * Runs a benchmark in a process of its own, with its output in `.cache/bench/report/NAME.log`. At its end, at its time limit and on an abort, all
 * processes that it has started end, and its temporary files are removed.
 *
 * @param program the module of the benchmarks' command. Default: that of this project
 */
export async function runChild(
  { name, command, seconds }: { name: string; command: readonly string[]; seconds: number },
  stop: AbortSignal,
  program = join(BENCH, "main.ts"),
): Promise<Ending> {
  mkdirSync(LOGS, { recursive: true });
  const log = openSync(join(LOGS, `${name}.log`), "w");
  const scratch = mkdtempSync(join(tmpdir(), "lance-gateway-report-"));
  const child = spawn(process.execPath, [...NODE.slice(1), program, ...command], {
    stdio: ["ignore", log, log, "ipc"],
    env: { ...process.env, TMPDIR: scratch },
    detached: true,
  });
  try {
    return await endingOf(child, seconds, stop);
  } finally {
    killGroup(child);
    closeSync(log);
    rmSync(scratch, { recursive: true, force: true, maxRetries: 5 });
  }
}

async function endingOf(child: ChildProcess, seconds: number, stop: AbortSignal): Promise<Ending> {
  let figures: readonly Figures[] | undefined;
  child.on("message", (message) => {
    figures = message as readonly Figures[];
  });
  const limit = AbortSignal.timeout(seconds * 1_000);
  try {
    const [code, signal] = await once(child, "exit", { signal: AbortSignal.any([limit, stop]) });
    if (figures !== undefined) return { figures };
    return { failure: `it ended with ${code ?? signal}` };
  } catch (error) {
    if (limit.aborted) return { failure: `it exceeded its time of ${seconds} s` };
    if (stop.aborted) return { failure: "it was stopped" };
    return { failure: `it did not start: ${error}` };
  }
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // All of the group have ended.
  }
}
