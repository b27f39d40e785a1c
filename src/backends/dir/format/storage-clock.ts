import { randomBytes } from "node:crypto";
import { keyIn, type ObjectStore } from "./storage.ts";

/** Clock of the storage, which dates the objects of all writers; the clocks of servers may differ by days. */
export interface StorageClock {
  /**
   * Returns a time that the storage has reached, in milliseconds since 1970, to compare with the times of objects.
   *
   * It may be late by the resolution of the storage's times and the duration of a write, but is never early, so an
   * object never seems older than it is.
   *
   * @throws LanceError if the storage cannot be written
   */
  now(): Promise<number>;
}

/**
 * Maximum age of a measurement, in milliseconds. The monotonic clock of the process counts from a measurement to the
 * next.
 */
const MEASURED_EVERY_MS = 10 * 60_000;

/**
 * Maximum drift between the process's two clocks since a measurement, in milliseconds. A larger drift shows that the
 * machine slept or that its clock was set.
 */
const MAX_DRIFT_MS = 1_000;

/** Clock of this machine, for a storage that is only read: nothing is removed or taken over by it. */
export const MACHINE_CLOCK: StorageClock = { now: async () => Date.now() };

/** Creates the key of a short-lived object that probes the storage; `gc` removes it if a crash leaves it behind. */
export function probeKey(baseKey: string): string {
  return keyIn(baseKey, `.probe-${randomBytes(8).toString("hex")}`);
}

/** Creates the clock of a storage; it measures by an empty object that it writes to `baseKey` and removes. */
export function createStorageClock(store: ObjectStore, baseKey: string): StorageClock {
  let measured: { readonly time: number; readonly monotonic: number; readonly wall: number } | undefined;
  let measuring: Promise<void> | undefined;

  async function measure(): Promise<void> {
    const key = probeKey(baseKey);
    try {
      await store.put(key, new Uint8Array());
      const [monotonic, wall] = [performance.now(), Date.now()];
      const info = await store.head(key);
      if (info === undefined) throw new Error(`${key} disappeared while the storage's time was measured`);
      measured = { time: info.modifiedMillis, monotonic, wall };
    } finally {
      await store.delete(key).catch(() => {});
    }
  }
  return {
    async now() {
      if (!isUsable()) {
        measuring ??= measure().finally(() => (measuring = undefined));
        await measuring;
      }
      const { time, monotonic } = measured as NonNullable<typeof measured>;
      return Math.floor(time + performance.now() - monotonic);
    },
  };

  function isUsable(): boolean {
    if (measured === undefined) return false;
    const passed = performance.now() - measured.monotonic;
    const drift = Date.now() - measured.wall - passed;
    return passed < MEASURED_EVERY_MS && Math.abs(drift) < MAX_DRIFT_MS;
  }
}
