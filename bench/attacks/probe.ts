import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { ServerProcess } from "../support/process.ts";
import { accounts } from "./loop.ts";

/** Response times of a probe, in milliseconds. */
export interface ProbeTimes {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
  /**
   * Maximum CPU time of the event loop's thread while a probe waited, in milliseconds. Unlike the response time, it
   * does not depend on other processes of the machine.
   */
  readonly work: number;
  /** Number of probes without an answer. */
  readonly failed: number;
}

const EVERY_MS = 20;
const PATIENCE_MS = 10_000;

/** A request that a probe repeats. */
export interface ProbeRequest {
  readonly path: string;
  /** JSON; the request is a GET without it. */
  readonly body?: string;
  /** The address from which it comes, by which the gateway tells callers without a name apart. */
  readonly localAddress?: string;
  /** Pause between two requests, in milliseconds. Default: 20 */
  readonly everyMs?: number;
}

const LIVENESS: ProbeRequest = { path: "/healthz" };

/** Sends a request to a server repeatedly, each time on a new connection. Default: the one for its liveness. */
export function startProbe(
  { port, pid }: ServerProcess,
  asked: ProbeRequest = LIVENESS,
): { end(): Promise<ProbeTimes> } {
  const times: number[] = [];
  let [failed, work] = [0, 0];
  let ended = false;
  const running = (async () => {
    while (!ended) {
      const [started, { cpu }] = [performance.now(), accounts(pid)];
      const alive = await probe(port, asked).catch(() => false);
      times.push(performance.now() - started);
      work = Math.max(work, accounts(pid).cpu - cpu);
      if (!alive) failed += 1;
      await sleep(asked.everyMs ?? EVERY_MS);
    }
  })();
  return {
    async end() {
      ended = true;
      await running;
      const sorted = times.toSorted((a, b) => a - b);
      const at = (share: number) => sorted[Math.floor((sorted.length - 1) * share)] ?? Number.NaN;
      return { p50: at(0.5), p99: at(0.99), max: at(1), work, failed };
    },
  };
}

async function probe(port: number, { path, body, localAddress }: ProbeRequest): Promise<boolean> {
  const outgoing = request({
    host: "127.0.0.1",
    port,
    path,
    ...(localAddress === undefined ? {} : { localAddress }),
    ...(body === undefined ? {} : { method: "POST", headers: { "content-type": "application/json" } }),
    agent: false,
    signal: AbortSignal.timeout(PATIENCE_MS),
  }).end(body);
  const [answer] = (await once(outgoing, "response")) as [IncomingMessage];
  for await (const _piece of answer);
  return answer.statusCode === 200;
}
