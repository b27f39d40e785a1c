import { createHash, randomUUID } from "node:crypto";
import { createSilence } from "../format/owner-silence.ts";
import { keyIn, listNames, type ObjectStore } from "../format/storage.ts";
import type { StorageClock } from "../format/storage-clock.ts";
import { hasEnded, type Owner, THIS_PROCESS } from "./owner.ts";

/**
 * Notes of long work on tables, which show that something may still be written to a location. The directory of a
 * dropped table stays until the work ends (docs/adr/0062).
 */
export interface WorkNotes {
  /** Notes work at a location; the returned function ends it. */
  begin(location: string): Promise<() => Promise<void>>;
  /** Whether any process may be at work at a location. */
  isAtWork(location: string): Promise<boolean>;
  /** Whether any process is at work at a location, or fell silent a moment ago. */
  isActive(location: string): Promise<boolean>;
  /** Whether another process is at work at a location, or fell silent a moment ago. */
  isOtherAtWork(location: string): Promise<boolean>;
  /** Returns the keys of the notes of processes that have ended. */
  stale(): Promise<string[]>;
}

/** Directory of the notes in the base of a catalog; implementations of the public format ignore it. */
export const WORK_DIRECTORY = ".work";

/**
 * Age from which a note counts no longer, in milliseconds. Until then the note of a process that cannot be looked for
 * only costs the disk space of a dropped table, and gives a new table of its name another directory.
 */
const STALE_AFTER = 24 * 60 * 60 * 1000;

/** Interval between signs of work that goes on, and silence after which {@link WorkNotes.isOtherAtWork} takes it for over, in milliseconds. */
const RENEW_MS = 60_000;
const SILENT_MS = 10 * 60_000;

/** Ending of the file that is written with each sign: a late one must not bring a note back. */
const ALIVE = ".alive";

/** The keys of the notes of this process whose work goes on. */
const running = new Set<string>();

/** Opens the notes of a base directory, given by its key. */
export function createWorkNotes(base: string, store: ObjectStore, clock: StorageClock): WorkNotes {
  const directory = keyIn(base, WORK_DIRECTORY);
  const silence = createSilence(clock);

  /** Returns the process whose work a note is about; undefined if that has ended, or has given no sign for so long. */
  async function workerOf(key: string, silentMs: number): Promise<Owner | undefined> {
    const [bytes, info, sign] = await Promise.all([store.get(key), store.head(key), store.head(key + ALIVE)]);
    // Only a loss of power leaves a note without content, and it has ended the process.
    const owner = bytes && parseOwner(bytes);
    if (owner === undefined || info === undefined) return undefined;
    const seen = Math.max(info.modifiedMillis, sign?.modifiedMillis ?? 0);
    const isOver =
      owner.process === THIS_PROCESS.process
        ? !running.has(key)
        : (await hasEnded(owner)) || (await silence.isLonger(key, seen, silentMs));
    return isOver ? undefined : owner;
  }
  /** Finds a process at work at a location. */
  async function isAtWork(
    location: string,
    silentMs: number,
    counts: (owner: Owner) => boolean,
  ): Promise<boolean> {
    const start = `${nameOf(location)}-`;
    for (const name of await listNames(store, directory)) {
      if (!name.startsWith(start) || name.endsWith(ALIVE)) continue;
      const owner = await workerOf(keyIn(directory, name), silentMs);
      if (owner !== undefined && counts(owner)) return true;
    }
    return false;
  }
  /** Gives signs until the returned function is called. */
  function renew(key: string): () => Promise<void> {
    let renewing: Promise<void> | undefined;
    const timer = setInterval(() => {
      renewing = store.putHint(key + ALIVE, Buffer.from("")).catch(() => {});
    }, RENEW_MS).unref();
    return async () => {
      clearInterval(timer);
      await renewing;
      if (renewing !== undefined) await store.delete(key + ALIVE);
    };
  }
  return {
    async begin(location) {
      const key = keyIn(directory, `${nameOf(location)}-${randomUUID()}`);
      running.add(key);
      try {
        await store.putHint(key, Buffer.from(JSON.stringify(THIS_PROCESS)));
      } catch (error) {
        running.delete(key);
        throw error;
      }
      const stop = renew(key);
      return async () => {
        running.delete(key);
        // Files that stay are stale.
        await Promise.all([store.delete(key), stop()]).catch(() => {});
      };
    },
    isAtWork: (location) => isAtWork(location, STALE_AFTER, () => true),
    isActive: (location) => isAtWork(location, SILENT_MS, () => true),
    isOtherAtWork: (location) =>
      isAtWork(location, SILENT_MS, (owner) => owner.process !== THIS_PROCESS.process),
    async stale() {
      const found: string[] = [];
      const names = new Set(await listNames(store, directory));
      for (const name of names) {
        const key = keyIn(directory, name);
        const isStale = name.endsWith(ALIVE)
          ? !names.has(name.slice(0, -ALIVE.length))
          : (await workerOf(key, STALE_AFTER)) === undefined;
        if (isStale) found.push(key);
      }
      return found;
    },
  };
}

/** Returns the part of the names of notes that identifies a location; the location itself may be too long for one. */
function nameOf(location: string): string {
  return createHash("sha256").update(location).digest("hex").slice(0, 32);
}

function parseOwner(bytes: Uint8Array): Owner | undefined {
  try {
    return JSON.parse(Buffer.from(bytes).toString("utf8")) as Owner;
  } catch {
    return undefined;
  }
}
