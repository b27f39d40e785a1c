import { Agent, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

/** Requests at a steady rate, whatever the answers take. */
export interface PacedLoad {
  readonly port: number;
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly perSecond: number;
  readonly seconds: number;
}

/**
 * Returns the times of the requests from their begin to the end of their answer, in milliseconds, the shortest first. An
 * answer other than 2xx throws.
 */
export async function runPacedLoad(load: PacedLoad): Promise<readonly number[]> {
  const agent = new Agent({ keepAlive: true });
  const started = performance.now();
  const calls: Promise<number>[] = [];
  try {
    for (let number = 0; number < load.perSecond * load.seconds; number++) {
      const due = started + (number * 1000) / load.perSecond;
      const early = due - performance.now();
      if (early > 0) await sleep(early);
      // The server does not answer for a timer that is late or early.
      const from = performance.now();
      calls.push(send(load, agent).then(() => performance.now() - from));
    }
    return (await Promise.all(calls)).toSorted((a, b) => a - b);
  } finally {
    agent.destroy();
  }
}

function send({ port, method, path, body, headers }: PacedLoad, agent: Agent): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const call = request({ host: "127.0.0.1", port, method, path, agent, headers }, (answer) => {
    if (answer.statusCode !== 200) reject(new Error(`${path} answered ${answer.statusCode}`));
    answer.resume().on("end", resolve).on("error", reject);
  });
  call.on("error", reject);
  call.setHeader("content-type", "application/json");
  call.end(body);
  return promise;
}

/** Returns the value below which a share of sorted values lies. */
export function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
