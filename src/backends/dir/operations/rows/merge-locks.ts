import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Call } from "../../../../namespace/call/call.ts";
import { type EarlyEnding, inTurn } from "../../concurrency/locks.ts";
import { cancellationOf, untilAborted } from "../../concurrency/wait.ts";
import type { DataContext } from "../../data/data-context.ts";
import type { ObjectStore } from "../../format/storage.ts";
import type { StorageClock } from "../../format/storage-clock.ts";
import { createSilence, keepRenewing, type LeaseTimes } from "../../ownership/renewal.ts";
import { upkeepDirectory } from "../../upkeep/lease.ts";
import { objectIdOf } from "../tables/naming/object-names.ts";
import { isMain } from "../tables/open-data.ts";

/** Times of the locks, in milliseconds. */
export interface MergeLockTimes extends LeaseTimes {
  /** Time for which a lock is kept after its last use, so that merges that follow each other need no requests. */
  readonly keepMs: number;
  /** Time of use after which a process lets others have their turn. */
  readonly turnMs: number;
  /** Interval at which a process looks for a lock of another one. */
  readonly pollMs: number;
}

const TIMES: MergeLockTimes = { leaseMs: 20_000, renewMs: 5_000, keepMs: 300, turnMs: 2_000, pollMs: 20 };

/** Name of the object beside the upkeep's tokens of a table. */
const NAME = "merging";

/** Locks of tables for merges that insert, which hold for all gateways of a root. */
export interface MergeLocks {
  /**
   * Runs work while no other process runs such work for the table. Several calls of this process run it at a time.
   *
   * @throws LanceError Cancelled, or the signal's own reason, while another process has the lock; the errors of the storage
   */
  withLock<T>(location: string, signal: AbortSignal, work: () => Promise<T>): Promise<T>;
  /** Gives the locks back that are kept. Those in use are given back with the end of their work, or expire. */
  close(): Promise<void>;
}

/** A lock that this process has. */
interface Held {
  users: number;
  readonly takenAt: number;
  /** Resolves when it is given back. */
  readonly released: Promise<void>;
  /** Begins or ends a use of it. */
  use(): void;
  endUse(): void;
  /** Gives it back, unless it is in use. */
  giveBack(): void;
}

/**
 * Opens the merge locks of a base directory, given by its key.
 *
 * Two engines that insert the same new key at the same time do not notice each other. A lock is an object that its owner creates, renews
 * and deletes. After a crash it is taken over once its owner has been silent for long enough. An owner that was paused for that time, for
 * example with its machine, loses the lock without noticing while its merge runs.
 */
export function createMergeLocks(
  base: string,
  store: ObjectStore,
  clock: StorageClock,
  { leaseMs, renewMs, keepMs, turnMs, pollMs }: MergeLockTimes = TIMES,
): MergeLocks {
  const silence = createSilence(clock);
  const held = new Map<string, Promise<Held>>();
  let isClosed = false;

  function hold(location: string, key: string, owner: Uint8Array, writtenAt: number): Held {
    const { promise: released, resolve } = Promise.withResolvers<void>();
    const { isFresh, stop } = keepRenewing(() => store.put(key, owner), { leaseMs, renewMs }, writtenAt);
    let idle: NodeJS.Timeout | undefined;
    const giveBack = () => {
      if (lock.users > 0 || !held.delete(location)) return;
      clearTimeout(idle);
      // Without the deletion, others wait until the lock is silent.
      const remove = async () => void (isFresh() && (await store.delete(key)));
      void stop()
        .then(remove)
        .catch(() => {})
        .then(resolve);
    };
    const lock: Held = {
      users: 0,
      takenAt: performance.now(),
      released,
      use() {
        clearTimeout(idle);
        lock.users++;
      },
      endUse() {
        lock.users--;
        if (lock.users === 0) idle = setTimeout(giveBack, isClosed || isTurnOver(lock) ? 0 : keepMs);
      },
      giveBack,
    };
    return lock;
  }
  const isTurnOver = ({ takenAt }: Held) => performance.now() - takenAt > turnMs;

  async function take(location: string, signal: AbortSignal): Promise<Held> {
    const key = `${upkeepDirectory(base, location)}/${NAME}`;
    const owner = Buffer.from(randomUUID());
    while (!signal.aborted) {
      const startedAt = performance.now();
      if (await store.putIfAbsent(key, owner)) return hold(location, key, owner, startedAt);
      const info = await store.head(key);
      if (info !== undefined && (await silence.isLonger(key, info.modifiedMillis, leaseMs))) {
        if (await takeOver(key, owner)) return hold(location, key, owner, startedAt);
      }
      if (info !== undefined) await sleep(pollMs * (0.5 + Math.random()));
    }
    throw cancellationOf(signal);
  }
  /** Replaces the lock of a silent owner. On a disk two processes may do so at the same moment, and the last one counts. */
  async function takeOver(key: string, owner: Uint8Array): Promise<boolean> {
    const silent = await store.getTagged(key);
    if (silent === undefined || !(await store.replace(key, owner, silent.tag))) return false;
    await sleep(10 * pollMs);
    const now = await store.get(key);
    return now !== undefined && Buffer.from(now).equals(owner);
  }
  async function use(location: string, signal: AbortSignal): Promise<Held> {
    for (;;) {
      const known = held.get(location);
      const lock = known === undefined ? await takeFor(location, signal) : await othersLock(known, signal);
      if (lock === undefined) continue;
      if (!isTurnOver(lock)) {
        lock.use();
        return lock;
      }
      await untilAborted(lock.released, signal);
      await sleep(3 * pollMs);
    }
  }
  async function takeFor(location: string, signal: AbortSignal): Promise<Held> {
    const taking = take(location, signal);
    held.set(location, taking);
    try {
      return await taking;
    } catch (error) {
      held.delete(location);
      throw error;
    }
  }
  /** Waits for a lock that another call takes; returns undefined if that call does not wait any more. */
  function othersLock(taking: Promise<Held>, signal: AbortSignal): Promise<Held | undefined> {
    return untilAborted(
      taking.catch(() => undefined),
      signal,
    );
  }
  return {
    async withLock(location, signal, work) {
      const lock = await use(location, signal);
      try {
        return await work();
      } finally {
        lock.endUse();
      }
    },
    async close() {
      isClosed = true;
      for (const taking of [...held.values()]) {
        const lock = await taking.catch(() => undefined);
        if (lock === undefined || lock.users > 0) continue;
        lock.giveBack();
        await lock.released;
      }
    },
  };
}

/** Longest wait for the changes of other callers, in milliseconds; most changes take less than a tenth of this. */
const LONGEST_WAIT_MS = 1_000;

/**
 * Lets changes of existing rows of a table follow each other: of two at the same time the engine commits one, and computes
 * the other one again, which leaves behind a file of deleted rows that no version refers to. A change that takes long does
 * not hold up the others for more than a second. The next change may begin when the engine has committed one: each waits
 * for its own sync, and these are shared.
 *
 * @returns runs a change in its turn; throws LanceError Cancelled when the call ends first
 */
export function createRowTurns({ createLocks }: Pick<DataContext, "createLocks">) {
  const locks = createLocks("rows");
  return <T>(call: Call, branch: string | undefined, change: EarlyEnding<T>): Promise<T> => {
    const name = `${objectIdOf(call.id)}\0${isMain(branch) ? "" : branch}`;
    const work = inTurn(locks, name, LONGEST_WAIT_MS, async (endTurn) => {
      if (call.signal.aborted) throw cancellationOf(call.signal);
      return change(endTurn);
    });
    return untilAborted(work, call.signal);
  };
}
