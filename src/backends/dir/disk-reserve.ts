import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { keyIn, listNames, type ObjectStore } from "./format/storage.ts";

/** Disk space that is reserved for work that frees more. */
export interface DiskReserve {
  /** Runs work that frees space; if the disk is full, it releases a slice of the reserve and retries. */
  spend<T>(work: () => Promise<T>): Promise<T>;
  /** Stops refilling the reserve. */
  close(): Promise<void>;
}

/** Options of {@link createDiskReserve}. */
export interface DiskReserveOptions {
  readonly store: ObjectStore;
  /** Key of the base directory. */
  readonly baseKey: string;
  readonly log: Logger;
  /** Size of the reserve in bytes; 0 for none. */
  readonly bytes: number;
  /** Interval between checks whether the reserve is complete, in milliseconds. Default: 60 seconds. */
  readonly refillMs?: number;
}

/** Directory of the reserve in the base of a catalog; implementations of the public format ignore it. */
export const RESERVE_DIRECTORY = ".reserve";

/** Each retry releases one slice, so that other writers that wait for space cannot take everything. */
const SLICES = 4;

/**
 * Creates the reserve of a catalog on a disk, and fills it in the background. Gateways of a catalog share it. Object
 * stores have none.
 */
export function createDiskReserve(options: DiskReserveOptions): DiskReserve {
  const { store, baseKey, log, bytes, refillMs = 60_000 } = options;
  if (store.files === undefined || bytes === 0) return { spend: (work) => work(), close: async () => {} };
  const directory = keyIn(baseKey, RESERVE_DIRECTORY);
  const stop = new AbortController();
  /** Number of running spenders; slices that they have released are not refilled meanwhile. */
  let spending = 0;

  async function release(): Promise<boolean> {
    for (const name of await listNames(store, directory)) {
      if (await store.delete(`${directory}/${name}`)) return true;
    }
    return false;
  }
  async function refill(): Promise<void> {
    for (let slice = 1; slice <= SLICES && spending === 0 && !stop.signal.aborted; slice++) {
      const key = `${directory}/${slice}`;
      // Random bytes, which no file system can compress.
      if ((await store.head(key)) === undefined) await store.put(key, randomBytes(Math.ceil(bytes / SLICES)));
    }
  }
  async function keep(): Promise<void> {
    while (!stop.signal.aborted) {
      await refill().catch((error) => log.debug({ err: error }, "the reserve of the disk cannot be filled"));
      await sleep(refillMs, undefined, { ref: false, signal: stop.signal }).catch(() => {});
    }
  }
  const keeping = keep();
  return {
    async spend(work) {
      spending++;
      try {
        for (let slices = 0; ; slices++) {
          try {
            return await work();
          } catch (error) {
            if (!isFull(error) || slices === SLICES || !(await release())) throw error;
            log.warn({ err: error }, "the disk is full; a part of the reserve is released to free space");
          }
        }
      } finally {
        spending--;
      }
    },
    async close() {
      stop.abort();
      await keeping;
    },
  };
}

/** Whether work failed because a disk, or the quota of its user, is full. */
function isFull(error: unknown): boolean {
  for (let each = error, depth = 0; each instanceof Error && depth < 8; each = each.cause, depth++) {
    if (["ENOSPC", "EDQUOT"].includes((each as NodeJS.ErrnoException).code ?? "")) return true;
  }
  return false;
}
