import { createHash, randomUUID } from "node:crypto";
import { createSilence } from "../format/silence.ts";
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
  /** Whether another process may be at work at a location. */
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

/** The keys of the notes of this process whose work goes on. */
const running = new Set<string>();

/** Opens the notes of a base directory, given by its key. */
export function createWorkNotes(base: string, store: ObjectStore, clock: StorageClock): WorkNotes {
  const directory = keyIn(base, WORK_DIRECTORY);
  const silence = createSilence(clock);

  /** Returns the process whose work a note is about; undefined if the note counts no longer. */
  async function workerOf(key: string): Promise<Owner | undefined> {
    const [bytes, info] = await Promise.all([store.get(key), store.head(key)]);
    // Only a loss of power leaves a note without content, and it has ended the process.
    const owner = bytes && parseOwner(bytes);
    if (owner === undefined || info === undefined) return undefined;
    const isOver =
      owner.process === THIS_PROCESS.process
        ? !running.has(key)
        : (await hasEnded(owner)) || (await silence.isLonger(key, info.modifiedMillis, STALE_AFTER));
    return isOver ? undefined : owner;
  }
  async function isAtWork(location: string, counts: (owner: Owner) => boolean): Promise<boolean> {
    const start = `${nameOf(location)}-`;
    for (const name of await listNames(store, directory)) {
      const owner = name.startsWith(start) ? await workerOf(keyIn(directory, name)) : undefined;
      if (owner !== undefined && counts(owner)) return true;
    }
    return false;
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
      return async () => {
        running.delete(key);
        // A note that stays is stale.
        await store.delete(key).catch(() => {});
      };
    },
    isAtWork: (location) => isAtWork(location, () => true),
    isOtherAtWork: (location) => isAtWork(location, (owner) => owner.process !== THIS_PROCESS.process),
    async stale() {
      const found: string[] = [];
      for (const name of await listNames(store, directory)) {
        const key = keyIn(directory, name);
        if ((await workerOf(key)) === undefined) found.push(key);
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
