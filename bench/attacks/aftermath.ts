import { setTimeout as sleep } from "node:timers/promises";
import { computedSeconds } from "../support/cpu.ts";

/** Work of a gateway after its attacker has ended. */
export interface Aftermath {
  /** Time until the last moment at which it computed for more than a quarter of a core, in seconds. */
  readonly busySeconds: number;
  /** Computing time beyond the first two seconds, in seconds. */
  readonly lateSeconds: number;
}

const WATCH_MS = 8_000;
const EVERY_MS = 200;
/** Time within which work must have ended, in milliseconds. */
const GRACE_MS = 2_000;

/** Watches a process whose attacker has just ended; Linux only. */
export async function watchAftermath(pid: number): Promise<Aftermath> {
  const began = performance.now();
  let [busySeconds, lateSeconds] = [0, 0];
  let [at, computed] = [began, computedSeconds(pid)];
  while (at - began < WATCH_MS) {
    await sleep(EVERY_MS);
    const [now, total] = [performance.now(), computedSeconds(pid)];
    const spent = total - computed;
    if (spent > (now - at) / 4_000) busySeconds = (now - began) / 1_000;
    if (at - began >= GRACE_MS) lateSeconds += spent;
    [at, computed] = [now, total];
  }
  return { busySeconds, lateSeconds };
}
