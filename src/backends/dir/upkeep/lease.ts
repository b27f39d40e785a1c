import { hash } from "node:crypto";
import { keyIn, type ObjectStore } from "../format/storage.ts";
import type { StorageClock } from "../format/storage-clock.ts";
import { createFencedLeases, type FencedLease } from "../ownership/fenced-lease.ts";
import type { LeaseTimes } from "../ownership/renewal.ts";

/** Leases of tables, in files of the base directory that other implementations ignore. */
export interface UpkeepLeases {
  /** Takes the lease of a table; returns undefined while another process has it. */
  acquire(location: string): Promise<FencedLease | undefined>;
  /** Notes for all processes that a table was optimized just now, or that a client commits to it itself since then. */
  noteOptimized(location: string, isOptimized: boolean): Promise<void>;
  /** Time since the noted optimization of a table, by the storage's clock, in milliseconds; infinite without one. */
  sinceOptimized(location: string): Promise<number>;
}

/** Directory of the leases in the base of a catalog; implementations of the public format ignore it. */
export const UPKEEP_DIRECTORY = ".upkeep";

const TIMES: LeaseTimes = { leaseMs: 60_000, renewMs: 15_000 };

/** Name of the note beside the tokens of a table. */
const OPTIMIZED = "optimized";

/** Longest name of a directory that all disks take, in characters of ASCII. */
const MAX_NAME_LENGTH = 255;

/** Begins the names that are hashes. No escaped location has this character. */
const HASHED = "=";

/** Name of the file with the location of a table, beside the tokens, in a directory whose name is a hash. */
export const LOCATION_FILE = "location";

/** Returns the name of the directory of a table's lease: the location, or its hash if the location is too long. */
function leaseName(location: string): string {
  const escaped = encodeURIComponent(location);
  return escaped.length <= MAX_NAME_LENGTH ? escaped : HASHED + hash("sha256", location);
}

/** Returns the directory for the tokens of a table, and for what is noted beside them. */
export function upkeepDirectory(base: string, location: string): string {
  return keyIn(base, `${UPKEEP_DIRECTORY}/${leaseName(location)}`);
}

/** Whether the name of a directory is a hash. */
export function isHashed(name: string): boolean {
  return name.startsWith(HASHED);
}

/** Opens the leases of a base directory, given by its key. The tokens of a table are in a directory of their own. */
export function createUpkeepLeases(
  base: string,
  store: ObjectStore,
  clock: StorageClock,
  times: LeaseTimes = TIMES,
): UpkeepLeases {
  const leases = createFencedLeases(store, clock, times);
  const directoryOf = (location: string) => upkeepDirectory(base, location);
  const noteOf = (location: string) => keyIn(directoryOf(location), OPTIMIZED);

  return {
    acquire(location) {
      const directory = directoryOf(location);
      if (!isHashed(leaseName(location))) return leases.acquire(directory);
      return leases.acquire(directory, () =>
        store.put(keyIn(directory, LOCATION_FILE), Buffer.from(location)),
      );
    },
    async noteOptimized(location, isOptimized) {
      if (isOptimized) await store.put(noteOf(location), Buffer.from(""));
      else await store.delete(noteOf(location));
    },
    async sinceOptimized(location) {
      const info = await store.head(noteOf(location));
      if (info === undefined) return Number.POSITIVE_INFINITY;
      const ms = (await clock.now()) - info.modifiedMillis;
      // The storage's clock was set back since.
      return ms < -times.leaseMs ? Number.POSITIVE_INFINITY : ms;
    },
  };
}
