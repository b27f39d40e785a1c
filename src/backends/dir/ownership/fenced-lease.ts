import { randomUUID } from "node:crypto";
import { keyIn, listNames, type ObjectStore } from "../format/storage.ts";
import type { StorageClock } from "../format/storage-clock.ts";
import { createSilence, keepRenewing, type LeaseTimes } from "./renewal.ts";

/** A lease that this process has. */
export interface FencedLease {
  /** Increases with each owner of the lease. */
  readonly token: number;
  /**
   * Whether the lease is this process's: it was renewed in time, by the monotonic clock, and nobody has a higher token.
   */
  isHeld(): Promise<boolean>;
  release(): Promise<void>;
  /** Stops the renewals, so that the lease expires: work goes on that cannot be stopped. */
  abandon(): void;
}

/** Leases, each in a directory of its own. */
export interface FencedLeases {
  /**
   * Takes a lease; returns undefined while another process has it.
   *
   * @param prepare is called before the lease is taken. Default: nothing
   */
  acquire(directory: string, prepare?: () => Promise<void>): Promise<FencedLease | undefined>;
}

/** Content of a lease that its owner has given back; any other content is the id of an owner. */
const RELEASED = Buffer.from("released");

/**
 * Opens the leases of a storage.
 *
 * A lease is an object whose name is its token. An owner creates it with a put-if-absent, so only a single process gets
 * a token, and renews it by writing it again: the storage's clock dates it. The object stays when the owner is done,
 * with another content, so that tokens never decrease.
 */
export function createFencedLeases(store: ObjectStore, clock: StorageClock, times: LeaseTimes): FencedLeases {
  const owner = Buffer.from(randomUUID());
  const silence = createSilence(clock);

  async function tokensIn(directory: string): Promise<number[]> {
    const names = await listNames(store, directory);
    return names.filter((name) => /^\d{1,15}$/.test(name)).map(Number);
  }
  async function isFree(key: string): Promise<boolean> {
    const info = await store.head(key);
    if (info === undefined || (await silence.isLonger(key, info.modifiedMillis, times.leaseMs))) return true;
    const content = await store.get(key);
    return content === undefined || RELEASED.equals(content);
  }
  function hold(directory: string, token: number, acquiredAt: number): FencedLease {
    const key = keyIn(directory, String(token));
    const { isFresh, stop } = keepRenewing(() => store.put(key, owner), times, acquiredAt);
    return {
      token,
      isHeld: async () => isFresh() && Math.max(...(await tokensIn(directory))) === token && isFresh(),
      abandon: () => void stop(),
      async release() {
        await stop();
        if (isFresh()) await store.put(key, RELEASED);
      },
    };
  }
  return {
    async acquire(directory, prepare = async () => {}) {
      const acquiredAt = performance.now();
      const last = Math.max(0, ...(await tokensIn(directory)));
      if (last > 0 && !(await isFree(keyIn(directory, String(last))))) return undefined;
      const token = last + 1;
      await prepare();
      if (!(await store.putIfAbsent(keyIn(directory, String(token)), owner))) return undefined;
      // The first listing misses a token that another process replaces at that moment.
      const found = await tokensIn(directory);
      if (Math.max(...found) !== token) {
        await store.delete(keyIn(directory, String(token)));
        return undefined;
      }
      for (const old of found) if (old !== token) await store.delete(keyIn(directory, String(old)));
      return hold(directory, token, acquiredAt);
    },
  };
}
