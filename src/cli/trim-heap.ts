import { performance } from "node:perf_hooks";
import type { Logger } from "pino";
import { v8Collector } from "../runtime/internals/v8-flags.ts";

/** How the garbage of a thread is collected. */
export interface Collector {
  /** Collects all garbage and unmaps what is free. It takes about 0.1 s and drops compiled code. */
  collectAll(): Promise<void>;
  /** Collects the garbage of the youngest objects and unmaps what their space has free. It takes less than a millisecond. */
  collectYoung(): Promise<void>;
}

/** Options of {@link trimHeapWhenIdle}. */
export interface TrimOptions {
  /** Interval between looks at the event loop, in milliseconds. Default: 3 s. */
  readonly lookMs?: number;
  /** Time of work from which on the compiled code is kept, in milliseconds. Default: 1 s. */
  readonly longWorkMs?: number;
  /** Default: V8's own collector. */
  readonly collector?: Collector;
}

/** Largest share of its time that an idle event loop works. */
const IDLE_SHARE = 0.05;

/**
 * Idle looks in a row, 15 s, after which the memory of the youngest objects is returned. V8 enlarges their space again only while
 * calls run, which costs a tenth of each at first, so the pauses of bursts must not count.
 */
const LOOKS_AFTER_WORK = 5;

/**
 * Time for which a loop works until its code is compiled for its calls, in milliseconds. A collection of everything would drop that
 * code, and V8 has collected the garbage of the start by then.
 */
const LONG_WORK_MS = 1_000;

/**
 * Returns memory of this thread's heap to the system while its event loop is idle: the memory of the start a single time, at the first
 * idle look, unless the loop has worked for longer before, and that of the youngest objects after each time of work. V8 shrinks a heap
 * only with a collection, and an idle gateway does not make enough garbage for one (docs/adr/0028).
 */
export function trimHeapWhenIdle(log: Logger, options: TrimOptions = {}): void {
  const { lookMs = 3_000, longWorkMs = LONG_WORK_MS, collector = BY_V8 } = options;
  let seen = performance.eventLoopUtilization();
  const begun = seen;
  let isStart = true;
  let idleLooks = 0;
  setInterval(() => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, seen);
    seen = now;
    isStart &&= performance.eventLoopUtilization(now, begun).active <= longWorkMs;
    idleLooks = utilization > IDLE_SHARE ? 0 : idleLooks + 1;
    if (idleLooks !== (isStart ? 1 : LOOKS_AFTER_WORK)) return;
    const collected = isStart ? collector.collectAll() : collector.collectYoung();
    isStart = false;
    collected.catch((error: unknown) => {
      log.debug({ err: error }, "memory of the heap cannot be returned");
    });
  }, lookMs).unref();
}

const BY_V8: Collector = {
  async collectAll() {
    // The second time it also gets what the first one has made unreachable.
    for (let time = 0; time < 2; time++)
      await v8Collector()({ type: "major", execution: "async", flavor: "last-resort" });
  },
  collectYoung: async () => v8Collector()({ type: "minor", execution: "async" }),
};
