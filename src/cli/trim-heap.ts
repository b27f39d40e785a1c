import { performance } from "node:perf_hooks";
import type { Logger } from "pino";

/** Options of {@link trimHeapWhenIdle}. */
export interface TrimOptions {
  /** Interval between looks at the event loop, in milliseconds. Default: 3 s. */
  readonly lookMs?: number;
}

/** Largest share of its time that an idle event loop works. */
const IDLE_SHARE = 0.05;

/**
 * Returns the memory of the start to the system, once the event loop of this thread has been idle for some seconds. V8 shrinks a
 * heap only after it has collected garbage, of which an idle gateway does not make enough (docs/adr/0093).
 *
 * It holds the loop for about 0.1 s.
 */
export function trimHeapWhenIdle(log: Logger, { lookMs = 3_000 }: TrimOptions = {}): void {
  let seen = performance.eventLoopUtilization();
  const looks = setInterval(() => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, seen);
    seen = now;
    if (utilization > IDLE_SHARE) return;
    clearInterval(looks);
    collectGarbage().catch((error: unknown) => {
      log.debug({ err: error }, "the memory of the start cannot be returned");
    });
  }, lookMs);
  looks.unref();
}

/** Collects all garbage and unmaps what is free, which Node offers nowhere else. */
async function collectGarbage(): Promise<void> {
  const { Session } = await import("node:inspector/promises");
  const session = new Session();
  session.connect();
  try {
    await session.post("HeapProfiler.collectGarbage");
  } finally {
    session.disconnect();
  }
}
