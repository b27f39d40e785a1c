import { setTimeout as sleep } from "node:timers/promises";
import type { Backend } from "../namespace/lance-namespace.ts";
import { createReadiness, type Readiness } from "../server/app/probes.ts";
import type { Workers } from "./workers.ts";

/** Makes a readiness that of the whole process; returns the one of this worker. */
export function joinReadiness(ofProcess: Readiness, workers: Workers): Readiness {
  const own = createReadiness();
  own.subscribe(() => workers.announce(own.ready));
  workers.onReadiness(ofProcess.set);
  return own;
}

/** Interval between checks of a backend until it is ready, and after that, in milliseconds. */
const READINESS_INTERVAL_MS = { unready: 1_000, ready: 3_000 } as const;

/**
 * Announces whether any backend can answer, until the readiness is closed. If only some of several backends are ready, the calls for the
 * others fail, and the gateway still counts as ready.
 *
 * @param backends returns the backends that answer calls now.
 */
export async function announceReadiness(
  backends: () => readonly Backend[],
  readiness: Readiness,
): Promise<void> {
  while (!readiness.closed) {
    const ready = await Promise.all(backends().map((backend) => backend.ready().catch(() => false)));
    readiness.set(ready.some(Boolean));
    const pause = READINESS_INTERVAL_MS[readiness.ready ? "ready" : "unready"];
    await sleep(pause, undefined, { ref: false });
  }
}
