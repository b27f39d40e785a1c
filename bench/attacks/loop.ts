import { readFileSync } from "node:fs";
import type { ServerProcess } from "../support/process.ts";

/** What became of the time of a gateway's event loop while it was watched, in milliseconds. */
export interface LoopTimes {
  /** The longest time between two turns, as the process measures it. */
  readonly longestDelay: number;
  /** The CPU of the thread of the event loop, in milliseconds for each second. */
  readonly cpu: number;
  /** How long that thread was ready to run and had no core, in milliseconds for each second. */
  readonly withoutCore: number;
}

/** The metrics' histogram samples the loop at this interval, and counts it in. */
const SAMPLE_MS = 10;

/** Watches the event loop of a gateway by its metrics and by the system's accounts. */
export async function watchLoop(gateway: ServerProcess): Promise<{ end(): Promise<LoopTimes> }> {
  // Asking for them begins the histogram, or begins it anew.
  await longestDelay(gateway.port);
  const [before, began] = [accounts(gateway.pid), performance.now()];
  return {
    async end() {
      const [after, seconds] = [accounts(gateway.pid), (performance.now() - began) / 1000];
      return {
        longestDelay: await longestDelay(gateway.port).catch(() => Number.NaN),
        cpu: (after.cpu - before.cpu) / seconds,
        withoutCore: (after.withoutCore - before.withoutCore) / seconds,
      };
    },
  };
}

async function longestDelay(port: number): Promise<number> {
  const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const seconds = /^nodejs_eventloop_lag_max_seconds (\S+)$/m.exec(metrics)?.[1];
  return Number(seconds) * 1000 - SAMPLE_MS;
}

/** The time of a process's first thread on a core, and in the queue for one, in milliseconds; Linux alone tells it. */
export function accounts(pid: number): { cpu: number; withoutCore: number } {
  try {
    const [cpu = 0, withoutCore = 0] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, "utf8")
      .split(" ")
      .map((nanoseconds) => Number(nanoseconds) / 1e6);
    return { cpu, withoutCore };
  } catch {
    return { cpu: Number.NaN, withoutCore: Number.NaN };
  }
}
