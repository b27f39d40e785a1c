/** Runs work under names, one at a time for each name. */
export interface KeyedLocks {
  /** Waits for all names, then works. It takes the names in order, so that two callers cannot deadlock. */
  withLocks<T>(names: Iterable<string>, work: () => Promise<T>): Promise<T>;
}

/** Creates locks of this process, which do not affect other processes. */
export function createKeyedLocks(): KeyedLocks {
  const tails = new Map<string, Promise<void>>();

  function withLock<T>(name: string, work: () => Promise<T>): Promise<T> {
    const before = tails.get(name) ?? Promise.resolve();
    const result = before.then(work);
    const tail = result.then(
      () => {},
      () => {},
    );
    tails.set(name, tail);
    void tail.then(() => {
      if (tails.get(name) === tail) tails.delete(name);
    });
    return result;
  }
  return {
    withLocks(names, work) {
      return [...new Set(names)].sort().reduceRight((inner, name) => () => withLock(name, inner), work)();
    },
  };
}

/**
 * Runs work after other work under the same name, but waits for its turn no longer than a limit. Late work runs beside
 * the others; its turn does not end before the work lets others follow.
 *
 * @param limitMs longest wait, in milliseconds
 */
export function inTurn<T>(
  locks: KeyedLocks,
  name: string,
  limitMs: number,
  work: EarlyEnding<T>,
): Promise<T> {
  const takeTurn = (held: () => Promise<void>) => {
    let begun: Promise<void> | undefined;
    const begin = (): Promise<void> => {
      begun ??= held();
      return begun;
    };
    const timer = setTimeout(begin, limitMs);
    return locks.withLocks([name], () => {
      clearTimeout(timer);
      return begin();
    });
  };
  return untilEarlyEnd(takeTurn, work);
}

/** Work that may let others follow before it ends, by a call of `end`. Without the call, they follow when it ends. */
export type EarlyEnding<T> = (end: () => void) => Promise<T>;

/**
 * Runs work under a lock that lasts until the work calls `end`, or ends itself.
 *
 * @param lock runs what it gets under the lock
 */
export function untilEarlyEnd<T>(
  lock: (held: () => Promise<void>) => Promise<void>,
  work: EarlyEnding<T>,
): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const held = () =>
    new Promise<void>((end) => {
      work(end).then(resolve, reject).finally(end);
    });
  lock(held).catch(reject);
  return promise;
}

/**
 * Keeps changes of a table and work that rewrites it apart, within this process. A change passes at once unless the
 * gate is closed.
 */
export interface WriteGate {
  /** Runs a change; first waits while the gate is closed. */
  pass<T>(table: string, change: () => Promise<T>): Promise<T>;
  /** Runs a change that takes long, such as the build of an index; {@link WriteGate.isBusy} shows it. */
  passSlowly<T>(table: string, change: () => Promise<T>): Promise<T>;
  /** Whether a change runs that takes long. */
  isBusy(table: string): Promise<boolean>;
  /** Whether a change runs that does not take long; it may also have outlasted the patience of a closing gate. */
  isRunning(table: string): Promise<boolean>;
  /**
   * Closes the gate, once it is open, and waits for the running changes to end, but not for long ones.
   *
   * @param drainMs longest wait, in milliseconds
   * @returns the function that opens the gate
   */
  close(table: string, drainMs: number): Promise<() => void>;
}

interface State {
  running: number;
  slow: number;
  /** Resolves when the gate opens; undefined while it is open. */
  closed: Promise<void> | undefined;
  /** Called when no short change runs any more. */
  onDrained: (() => void) | undefined;
}

/** Creates a gate for each table, all open. */
export function createWriteGate(): WriteGate {
  const states = new Map<string, State>();

  function stateOf(table: string): State {
    let state = states.get(table);
    if (state === undefined) {
      state = { running: 0, slow: 0, closed: undefined, onDrained: undefined };
      states.set(table, state);
    }
    return state;
  }
  function forgetIfIdle(table: string, state: State): void {
    if (state.running + state.slow === 0 && state.closed === undefined && states.get(table) === state) {
      states.delete(table);
    }
  }
  async function run<T>(table: string, kind: "running" | "slow", change: () => Promise<T>): Promise<T> {
    let state = stateOf(table);
    while (state.closed !== undefined) {
      await state.closed;
      state = stateOf(table);
    }
    state[kind]++;
    try {
      return await change();
    } finally {
      state[kind]--;
      if (state.running === 0) state.onDrained?.();
      forgetIfIdle(table, state);
    }
  }
  return {
    pass: (table, change) => run(table, "running", change),
    passSlowly: (table, change) => run(table, "slow", change),
    isBusy: async (table) => (states.get(table)?.slow ?? 0) > 0,
    isRunning: async (table) => (states.get(table)?.running ?? 0) > 0,
    async close(table, drainMs) {
      let state = stateOf(table);
      while (state.closed !== undefined) {
        await state.closed;
        state = stateOf(table);
      }
      const { promise, resolve } = Promise.withResolvers<void>();
      state.closed = promise;
      if (state.running > 0) {
        const drained = Promise.withResolvers<void>();
        state.onDrained = drained.resolve;
        const timer = setTimeout(drained.resolve, drainMs);
        await drained.promise;
        clearTimeout(timer);
        state.onDrained = undefined;
      }
      return () => {
        if (state.closed !== promise) return;
        state.closed = undefined;
        resolve();
        forgetIfIdle(table, state);
      };
    },
  };
}
