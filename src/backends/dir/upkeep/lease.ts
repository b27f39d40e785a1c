import { hash, randomUUID } from "node:crypto";
import { createSilence } from "../format/owner-silence.ts";
import { keyIn, listNames, type ObjectStore } from "../format/storage.ts";
import type { StorageClock } from "../format/storage-clock.ts";

/** The right of this process to look after a table. */
export interface UpkeepLease {
  /** Increases with each owner of the table's lease. */
  readonly token: number;
  /**
   * Whether the lease is this process's: it was renewed in time, by the monotonic clock, and nobody has a higher token.
   */
  isHeld(): Promise<boolean>;
  release(): Promise<void>;
  /** Stops the renewals, so that the lease expires: work goes on that cannot be stopped. */
  abandon(): void;
}

/** Leases of tables, in files of the base directory that other implementations ignore. */
export interface UpkeepLeases {
  /** Takes the lease of a table; returns undefined while another process has it. */
  acquire(location: string): Promise<UpkeepLease | undefined>;
  /** Notes for all processes that a table was optimized just now, or that a client commits to it itself since then. */
  noteOptimized(location: string, isOptimized: boolean): Promise<void>;
  /** Time since the noted optimization of a table, by the storage's clock, in milliseconds; infinite without one. */
  sinceOptimized(location: string): Promise<number>;
}

/** Directory of the leases in the base of a catalog; implementations of the public format ignore it. */
export const UPKEEP_DIRECTORY = ".upkeep";

/** Silence after which another process takes over, and the interval between renewals, in milliseconds. */
export interface UpkeepLeaseTimes {
  readonly leaseMs: number;
  readonly renewMs: number;
}

const TIMES: UpkeepLeaseTimes = { leaseMs: 60_000, renewMs: 15_000 };

/** Name of the note beside the tokens of a table. */
const OPTIMIZED = "optimized";

/** Content of a lease that its owner has given back; any other content is the id of an owner. */
const RELEASED = Buffer.from("released");

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

/**
 * Opens the leases of a base directory, given by its key.
 *
 * A lease is an object whose name is its token. An owner creates it with a put-if-absent, so only a single process gets
 * a token, and renews it by writing it again: the storage's clock dates it. The object stays when the owner is done,
 * with another content, so that tokens never decrease.
 */
export function createUpkeepLeases(
  base: string,
  store: ObjectStore,
  clock: StorageClock,
  { leaseMs, renewMs }: UpkeepLeaseTimes = TIMES,
): UpkeepLeases {
  const owner = Buffer.from(randomUUID());
  const silence = createSilence(clock);
  const directoryOf = (location: string) => upkeepDirectory(base, location);
  const noteOf = (location: string) => keyIn(directoryOf(location), OPTIMIZED);

  async function tokensOf(location: string): Promise<number[]> {
    const names = await listNames(store, directoryOf(location));
    return names.filter((name) => /^\d{1,15}$/.test(name)).map(Number);
  }
  async function isFree(key: string): Promise<boolean> {
    const info = await store.head(key);
    if (info === undefined || (await silence.isLonger(key, info.modifiedMillis, leaseMs))) return true;
    const content = await store.get(key);
    return content === undefined || RELEASED.equals(content);
  }
  function hold(location: string, token: number, acquiredAt: number): UpkeepLease {
    const key = keyIn(directoryOf(location), String(token));
    let renewedAt = acquiredAt;
    let renewing: Promise<void> | undefined;
    const isFresh = () => performance.now() - renewedAt < leaseMs;
    const timer = setInterval(() => {
      const startedAt = performance.now();
      // A late owner leaves the lease to the next one.
      if (!isFresh()) return;
      renewing ??= store
        .put(key, owner)
        .then(() => {
          renewedAt = startedAt;
        })
        .catch(() => {})
        .finally(() => {
          renewing = undefined;
        });
    }, renewMs).unref();
    return {
      token,
      isHeld: async () => isFresh() && Math.max(...(await tokensOf(location))) === token && isFresh(),
      abandon: () => clearInterval(timer),
      async release() {
        clearInterval(timer);
        await renewing;
        if (isFresh()) await store.put(key, RELEASED);
      },
    };
  }
  return {
    async acquire(location) {
      const acquiredAt = performance.now();
      const directory = directoryOf(location);
      const tokens = await tokensOf(location);
      const last = Math.max(0, ...tokens);
      if (last > 0 && !(await isFree(keyIn(directory, String(last))))) return undefined;
      const token = last + 1;
      if (isHashed(leaseName(location)))
        await store.put(keyIn(directory, LOCATION_FILE), Buffer.from(location));
      if (!(await store.putIfAbsent(keyIn(directory, String(token)), owner))) return undefined;
      // The first listing misses a token that another process replaces at that moment.
      const found = await tokensOf(location);
      if (Math.max(...found) !== token) {
        await store.delete(keyIn(directory, String(token)));
        return undefined;
      }
      for (const old of found) if (old !== token) await store.delete(keyIn(directory, String(old)));
      return hold(location, token, acquiredAt);
    },
    async noteOptimized(location, isOptimized) {
      if (isOptimized) await store.put(noteOf(location), owner);
      else await store.delete(noteOf(location));
    },
    async sinceOptimized(location) {
      const info = await store.head(noteOf(location));
      if (info === undefined) return Number.POSITIVE_INFINITY;
      const ms = (await clock.now()) - info.modifiedMillis;
      // The storage's clock was set back since.
      return ms < -leaseMs ? Number.POSITIVE_INFINITY : ms;
    },
  };
}
