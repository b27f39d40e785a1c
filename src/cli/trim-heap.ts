import { performance } from "node:perf_hooks";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Logger } from "pino";

/** Options of {@link trimHeapWhenIdle}. */
export interface TrimOptions {
  /** Interval between looks at the event loop, in milliseconds. Default: 3 s. */
  readonly lookMs?: number;
  /** Time of work from which on the loop is left alone, in milliseconds. Default: 1 s. */
  readonly longWorkMs?: number;
  /** Collects all garbage. Default: V8's own function. */
  readonly collect?: () => Promise<void>;
}

/** Largest share of its time that an idle event loop works. */
const IDLE_SHARE = 0.05;

/**
 * Time for which a loop works until its code is compiled for its calls, in milliseconds. The collection would drop that code, and V8
 * has collected the garbage of the start by then.
 */
const LONG_WORK_MS = 1_000;

/**
 * Returns the memory of the start to the system, once the event loop of this thread has been idle for some seconds. V8 shrinks a
 * heap only after it has collected garbage, of which an idle gateway does not make enough (docs/adr/0093). A loop that has worked for
 * longer before is left alone.
 *
 * It holds the loop for about 0.1 s.
 */
export function trimHeapWhenIdle(log: Logger, options: TrimOptions = {}): void {
  const { lookMs = 3_000, longWorkMs = LONG_WORK_MS, collect = collectGarbage } = options;
  let seen = performance.eventLoopUtilization();
  const begun = seen;
  const looks = setInterval(() => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, seen);
    seen = now;
    if (utilization > IDLE_SHARE) return;
    clearInterval(looks);
    if (performance.eventLoopUtilization(now, begun).active > longWorkMs) return;
    collect().catch((error: unknown) => {
      log.debug({ err: error }, "the memory of the start cannot be returned");
    });
  }, lookMs);
  looks.unref();
}

/** V8's own function that collects garbage. */
type Collect = (options: { type: "major"; execution: "async"; flavor: "last-resort" }) => Promise<void>;

/**
 * Collects all garbage and unmaps what is free. The second time it also gets what the first one has made unreachable, such as the
 * context from which V8's function comes.
 */
async function collectGarbage(): Promise<void> {
  setFlagsFromString("--expose-gc");
  const collect: Collect = runInNewContext("gc");
  setFlagsFromString("--no-expose-gc");
  for (let time = 0; time < 2; time++)
    await collect({ type: "major", execution: "async", flavor: "last-resort" });
}
