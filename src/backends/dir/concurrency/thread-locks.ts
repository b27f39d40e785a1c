import { setTimeout as sleep } from "node:timers/promises";
import threads from "node:worker_threads";
import { createKeyedLocks, createWriteGate, type KeyedLocks, type WriteGate } from "./locks.ts";

/** Whether locks hold for all threads of a process, which older versions of Node lack. */
export const HAS_THREAD_LOCKS = "locks" in threads;

/** Holds a lock until this thread ends. */
export function holdThreadLock(name: string): void {
  if (HAS_THREAD_LOCKS) void threads.locks.request(name, () => new Promise(() => {}));
}

/**
 * Whether a thread of this process holds a lock; true where that cannot be known. It tries to take the lock, because
 * `locks.query()` tells only of the locks of its own thread.
 */
export async function isThreadLockHeld(name: string): Promise<boolean> {
  return !HAS_THREAD_LOCKS || threads.locks.request(name, { ifAvailable: true }, (lock) => lock === null);
}

/**
 * Interval at which Node is made to look at its queues while requests wait, in milliseconds. It frees the locks of a
 * thread that ends, and does not tell those who wait for them; any other request of the process makes it look.
 */
const WAKE_MS = 100;

let waiting = 0;
let timer: NodeJS.Timeout | undefined;

function wake(): void {
  if (waiting > 0) {
    void threads.locks.request("wake", { ifAvailable: true }, () => {});
    return;
  }
  clearInterval(timer);
  timer = undefined;
}

/** Runs work under a lock, and waits for the lock also if the thread that holds it ends. */
async function request<T>(name: string, mode: LockMode, work: () => Promise<T>): Promise<T> {
  let isWaiting = true;
  const endWait = () => {
    if (isWaiting) waiting -= 1;
    isWaiting = false;
  };
  waiting += 1;
  timer ??= setInterval(wake, WAKE_MS).unref();
  try {
    return (await threads.locks.request(name, { mode }, () => {
      endWait();
      return work();
    })) as T;
  } finally {
    endWait();
  }
}

type LockMode = "exclusive" | "shared";

/** Creates locks that hold for all threads of this process. The system frees those of a thread that ends. */
export function createThreadLocks(scope: string): KeyedLocks {
  return {
    withLocks(names, work) {
      const withLock = (name: string, inner: () => Promise<never>) =>
        request(`${scope} ${name}`, "exclusive", inner);
      const run = [...new Set(names)]
        .sort()
        .reduceRight((inner, name) => () => withLock(name, inner), work as () => Promise<never>);
      return run();
    },
  };
}

/** Interval at which a closing gate looks whether changes still run, in milliseconds. */
const DRAIN_LOOK_MS = 10;

/**
 * Creates gates that hold for all threads of this process. Each has three locks: a turnstile, which a closed gate holds
 * alone, and one that running changes share, for short changes and for long ones.
 */
export function createThreadGate(scope: string): WriteGate {
  const nameOf = (part: "turnstile" | "running" | "slow", table: string) => `${scope} ${part} ${table}`;

  /** Runs a change under a shared lock that it takes while it is in the turnstile. */
  async function run<T>(table: string, part: "running" | "slow", change: () => Promise<T>): Promise<T> {
    const entered = Promise.withResolvers<void>();
    const { result } = await request(nameOf("turnstile", table), "shared", async () => {
      const result = request(nameOf(part, table), "shared", () => {
        entered.resolve();
        return change();
      });
      result.catch(entered.reject);
      await entered.promise.catch(() => {});
      return { result };
    });
    return await result;
  }
  return {
    pass: (table, change) => run(table, "running", change),
    passSlowly: (table, change) => run(table, "slow", change),
    isBusy: (table) => isThreadLockHeld(nameOf("slow", table)),
    isRunning: (table) => isThreadLockHeld(nameOf("running", table)),
    async close(table, drainMs) {
      const opened = Promise.withResolvers<void>();
      const entered = Promise.withResolvers<void>();
      const held = request(nameOf("turnstile", table), "exclusive", () => {
        entered.resolve();
        return opened.promise;
      });
      held.catch(entered.reject);
      await entered.promise;
      const until = performance.now() + drainMs;
      // An aborted request stays in Node's queue and holds all later ones, so that waiting with a limit means to poll.
      while ((await isThreadLockHeld(nameOf("running", table))) && performance.now() < until)
        await sleep(DRAIN_LOOK_MS);
      return opened.resolve;
    },
  };
}

/** Locks that keep changes of the same table apart within a process. */
export interface Exclusion {
  readonly gate: WriteGate;
  readonly histories: WriteGate;
  /** Returns the locks of a purpose. */
  readonly createLocks: (purpose: string) => KeyedLocks;
}

/**
 * Creates the exclusion of a catalog.
 *
 * @param shared name of a catalog that several workers of the process serve. Default: a single thread serves it
 */
export function createExclusion(shared?: string): Exclusion {
  if (shared !== undefined) {
    return {
      gate: createThreadGate(shared),
      histories: createThreadGate(`${shared} histories`),
      createLocks: (purpose) => createThreadLocks(`${shared} ${purpose}`),
    };
  }
  const ofPurpose = new Map<string, KeyedLocks>();
  return {
    gate: createWriteGate(),
    histories: createWriteGate(),
    createLocks(purpose) {
      const locks = ofPurpose.get(purpose) ?? createKeyedLocks();
      ofPurpose.set(purpose, locks);
      return locks;
    },
  };
}
