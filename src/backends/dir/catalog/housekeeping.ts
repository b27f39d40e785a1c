import type { Logger } from "pino";

/** A piece of background work. */
export interface Chore {
  readonly name: string;
  /**
   * Does what there is to do.
   *
   * @returns after how many milliseconds there will be something to do again, even if nothing is committed;
   *   undefined when only a commit brings work
   */
  run(signal: AbortSignal): Promise<number | undefined>;
}

/** Background work that follows commits. */
export interface Housekeeping {
  /** Tells of a commit. */
  noteCommit(): void;
  /** Ends after the piece of work that runs. */
  close(): Promise<void>;
}

/** Options of {@link createHousekeeping}. */
export interface HousekeepingOptions {
  /**
   * How long after the first commit that it has not seen work begins, in milliseconds, so that a burst is cleared up
   * at once. Default: 2 seconds.
   */
  readonly delayMs?: number;
  /** How long nothing is tried again after a failure, in milliseconds. Default: 30 seconds. */
  readonly pauseMs?: number;
}

/** Creates the background work of a catalog: one chore at a time, one after the other. */
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
