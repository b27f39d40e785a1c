import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

/** How long the answers of a probe took, in milliseconds. */
export interface ProbeTimes {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
  /** Probes without an answer. */
  readonly failed: number;
}

const EVERY_MS = 20;
const PATIENCE_MS = 10_000;

/** Asks a gateway whether it lives, over and over, each time on a new connection. */
export function startProbe(port: number): { end(): Promise<ProbeTimes> } {
  const times: number[] = [];
  let failed = 0;
  let ended = false;
  const running = (async () => {
    while (!ended) {
      const started = performance.now();
      const alive = await probe(port).catch(() => false);
      times.push(performance.now() - started);
      if (!alive) failed += 1;
      await sleep(EVERY_MS);
    }
  })();
  return {
    async end() {
      ended = true;
      await running;
      const sorted = times.toSorted((a, b) => a - b);
      const at = (share: number) => sorted[Math.floor((sorted.length - 1) * share)] ?? Number.NaN;
      return { p50: at(0.5), p99: at(0.99), max: at(1), failed };
    },
  };
}

async function probe(port: number): Promise<boolean> {
  const signal = AbortSignal.timeout(PATIENCE_MS);
  const outgoing = request({ host: "127.0.0.1", port, path: "/healthz", agent: false, signal }).end();
  const [answer] = (await once(outgoing, "response")) as [IncomingMessage];
  answer.resume();
  return answer.statusCode === 200;
}
