import type { Logger } from "pino";

/** A piece of background work. */
export interface Chore {
  readonly name: string;
  /**
   * Does the pending work.
   *
   * @returns the milliseconds until there is work again, even without a commit; undefined if only a commit brings work
   */
  run(signal: AbortSignal): Promise<number | undefined>;
}

/** Background work that follows commits. */
export interface Housekeeping {
  /** Reports a commit. */
  noteCommit(): void;
  /** Resolves after the running piece of work. */
  close(): Promise<void>;
}

/** Options of {@link createHousekeeping}. */
export interface HousekeepingOptions {
  /**
   * Delay between a first commit and the work that follows it, in milliseconds, so that the work covers a whole burst.
   * Default: 2 seconds.
   */
  readonly delayMs?: number;
  /** Pause after a failure, in milliseconds. Default: 30 seconds. */
  readonly pauseMs?: number;
}

/** Creates the background work of a catalog, which runs a single chore at a time, in turn. */
export function createHousekeeping(
  chores: readonly Chore[],
  log: Logger,
  { delayMs = 2_000, pauseMs = 30_000 }: HousekeepingOptions = {},
): Housekeeping {
  const stop = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  let wanted = false;

  function schedule(afterMs: number): void {
    if (timer !== undefined || stop.signal.aborted) return;
    timer = setTimeout(() => {
      timer = undefined;
      running = work();
    }, afterMs).unref();
  }
  async function work(): Promise<void> {
    wanted = false;
    let next: number | undefined;
    for (const chore of chores) {
      if (stop.signal.aborted) break;
      next = sooner(next, await attempt(chore));
    }
    running = undefined;
    if (wanted) schedule(delayMs);
    else if (next !== undefined) schedule(next);
  }
  async function attempt({ name, run }: Chore): Promise<number | undefined> {
    const started = performance.now();
    try {
      return await run(stop.signal);
    } catch (error) {
      log.debug({ err: error, chore: name }, "a chore of the catalog failed and is tried again");
      return pauseMs;
    } finally {
      log.trace({ chore: name, ms: Math.round(performance.now() - started) }, "a chore of the catalog");
    }
  }
  return {
    noteCommit() {
      wanted = true;
      if (running === undefined) schedule(delayMs);
    },
    async close() {
      stop.abort();
      clearTimeout(timer);
      await running;
    },
  };
}

function sooner(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.min(a, b);
}
