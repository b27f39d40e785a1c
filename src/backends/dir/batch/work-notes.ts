import { createHash, randomUUID } from "node:crypto";
import { keyIn, type ObjectStore } from "../format/storage.ts";
import type { StorageClock } from "../format/storage-clock.ts";
import { createNotes, type Owner, THIS_PROCESS } from "../ownership/owner.ts";

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

/** Times of the signs of work that goes on. */
const TIMES = { renewMs: 60_000, leaseMs: STALE_AFTER };

/** Silence after which {@link WorkNotes.isOtherAtWork} takes work for over, in milliseconds. */
const SILENT_MS = 10 * 60_000;

/** The ids of the notes of this process whose work goes on. */
const running = new Set<string>();

/** Opens the notes of a base directory, given by its key. */
export function createWorkNotes(base: string, store: ObjectStore, clock: StorageClock): WorkNotes {
  const notes = createNotes(keyIn(base, WORK_DIRECTORY), store, clock);

  /** Returns the process whose work a note is about; undefined if that has ended, or has given no sign for so long. */
  async function workerOf(id: string, silentMs: number): Promise<Owner | undefined> {
    const bytes = await store.get(notes.keyOf(id));
    // Only a loss of power leaves a note without content, and it has ended the process.
    const owner = bytes && parseOwner(bytes);
    if (owner === undefined || (await notes.isLeft(id, owner, running.has(id), silentMs))) return undefined;
    return owner;
  }
  /** Finds a process at work at a location. */
  async function isAtWork(
    location: string,
    silentMs: number,
    counts: (owner: Owner) => boolean,
  ): Promise<boolean> {
    const start = `${nameOf(location)}-`;
    for (const id of await notes.ids()) {
      if (!id.startsWith(start)) continue;
      const owner = await workerOf(id, silentMs);
      if (owner !== undefined && counts(owner)) return true;
    }
    return false;
  }
  return {
    async begin(location) {
      const id = `${nameOf(location)}-${randomUUID()}`;
      const begun = performance.now();
      running.add(id);
      try {
        await store.putHint(notes.keyOf(id), Buffer.from(JSON.stringify(THIS_PROCESS)));
      } catch (error) {
        running.delete(id);
        throw error;
      }
      const { stop } = notes.renew(id, TIMES, begun);
      const removeSigns = async () => {
        if (await stop()) await notes.removeSigns(id);
      };
      return async () => {
        running.delete(id);
        // Files that stay are stale.
        await Promise.all([store.delete(notes.keyOf(id)), removeSigns()]).catch(() => {});
      };
    },
    isAtWork: (location) => isAtWork(location, STALE_AFTER, () => true),
    isActive: (location) => isAtWork(location, SILENT_MS, () => true),
    isOtherAtWork: (location) =>
      isAtWork(location, SILENT_MS, (owner) => owner.process !== THIS_PROCESS.process),
    async stale() {
      const stale: string[] = [];
      for (const id of await notes.ids())
        if ((await workerOf(id, STALE_AFTER)) === undefined) stale.push(notes.keyOf(id));
      return [...stale, ...(await notes.strays())];
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
