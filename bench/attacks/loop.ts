import { readFileSync } from "node:fs";
import type { ServerProcess } from "../support/process.ts";

/** The use of a gateway's event loop during a measurement, in milliseconds. */
export interface LoopTimes {
  /** The longest delay of a turn, as the process measures it. */
  readonly longestDelay: number;
  /** CPU time of the event loop's thread, in milliseconds per second. */
  readonly cpu: number;
  /** Time for which that thread was ready to run without a core, in milliseconds per second. */
  readonly withoutCore: number;
}

/** Sampling interval of the metrics' histogram, in milliseconds; the histogram includes it in each delay. */
const SAMPLE_MS = 10;

/** Watches the event loop of a gateway by its metrics and by the system's accounting. */
export async function watchLoop(gateway: ServerProcess): Promise<{ end(): Promise<LoopTimes> }> {
  // Reading the metrics begins or resets the histogram.
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

/**
 * Returns the time that a process's first thread has spent on a core and in the queue for one, in milliseconds; Linux
 * only.
 */
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
