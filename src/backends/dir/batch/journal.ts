import { randomUUID } from "node:crypto";
import { LanceError } from "../../../namespace/errors.ts";
import type { TableContext } from "../catalog/catalog-context.ts";
import { keyIn, type ObjectStore } from "../format/storage.ts";
import type { StorageClock } from "../format/storage-clock.ts";
import type { Jobs } from "../jobs/jobs.ts";
import { createNotes, hasLeft, type Owner, THIS_PROCESS } from "../ownership/owner.ts";
import { createSilence, type LeaseTimes } from "../ownership/renewal.ts";
import type { Intent } from "./intent.ts";
import type { WorkNotes } from "./work-notes.ts";

/** A recorded intent. */
export interface PendingIntent {
  /** Id of the change, also in its verdict in the manifest. */
  readonly id: string;
  readonly intent: Intent;
  /** Whether the note still exists, so the change is unfinished. */
  isOpen(): Promise<boolean>;
  /** Whether no process can be at work on the change any longer, so that its verdict may be removed. */
  isOver(): Promise<boolean>;
  /** Removes the note, after everything is done or undone. */
  end(): Promise<void>;
}

/** An intent that this process carries out. */
export interface OwnIntent extends Omit<PendingIntent, "isOver"> {
  /**
   * Whether other processes leave the change to this one.
   *
   * It uses the monotonic clock, and renewals that were acknowledged. It avoids work that would be taken back; the
   * verdict decides between done and undone.
   */
  isHeld(): boolean;
  /** Leaves the intent to be resolved later, by this process or another one. */
  abandon(): void;
  /** Leaves the intent to other processes: this one cannot know what the disk has kept. */
  leaveToOthers(): Promise<void>;
}

/** The intents of a catalog, in files of its base directory that other implementations ignore. */
export interface Journal {
  begin(intent: Intent): Promise<OwnIntent>;
  /** Returns the abandoned intents: their process has ended, has let go of them, or has been silent for too long. */
  abandoned(): Promise<PendingIntent[]>;
  /** Whether an intent is recorded, so the change is unfinished. */
  isOpen(id: string): Promise<boolean>;
  /** Returns the ids of all intents. */
  ids(): Promise<ReadonlySet<string>>;
  /** Returns the locations whose files any process's intent removes. */
  removing(): Promise<ReadonlySet<string>>;
  /** Returns the keys of files that hold no intent, and of renewals without one, which are skipped. */
  broken(): Promise<string[]>;
}

/** Directory of the intents in the base of a catalog; implementations of the public format ignore it. */
export const INTENTS_DIRECTORY = ".intents";

/** Times of the notes of changes, in milliseconds. */
export interface JournalTimes extends LeaseTimes {
  /** Longest time until a change commits; then its own process abandons it. */
  readonly lifeMs: number;
  /** How long the note of a refused change stays, so that late work of its slow owner is taken back. */
  readonly retainMs: number;
}

const TIMES: JournalTimes = {
  renewMs: 10_000,
  leaseMs: 60_000,
  lifeMs: 15 * 60_000,
  retainMs: 30 * 60_000,
};

interface Entry {
  readonly owner: Owner;
  readonly intent: Intent;
}

/** The intents that this process has left to be resolved later. */
const leftBehind = new Set<string>();

/** The intents of this process whose notes a storage may write once more: an attempt got no answer. */
const unanswered = new Set<string>();

/**
 * Replaces such a note at its end. The storage writes the note only if there is none; after a deletion that would bring
 * the note back, and the change would be undone.
 */
const ENDED = Buffer.from("ended");

/** Opens the journal of a base directory, given by its key. */
export function createJournal(
  base: string,
  store: ObjectStore,
  clock: StorageClock,
  times: JournalTimes = TIMES,
): Journal {
  const notes = createNotes(keyIn(base, INTENTS_DIRECTORY), store, clock, ".json");
  const silence = createSilence(clock);
  const noteOf = notes.keyOf;

  async function remove(id: string): Promise<void> {
    await (unanswered.has(id) ? store.put(noteOf(id), ENDED) : store.delete(noteOf(id)));
    leftBehind.delete(id);
    unanswered.delete(id);
  }
  async function isOpen(id: string): Promise<boolean> {
    const bytes = await store.get(noteOf(id));
    return bytes !== undefined && parseEntry(bytes) !== undefined;
  }
  async function write(id: string, entry: Entry): Promise<void> {
    const note = Buffer.from(JSON.stringify(entry));
    try {
      // Nothing on a disk is late.
      if (store.files !== undefined) await store.put(noteOf(id), note);
      else await store.putIfAbsent(noteOf(id), note, undefined, () => unanswered.add(id));
    } catch (error) {
      // The note may be stored, or may be later, and nothing follows it.
      await remove(id).catch(() => leftBehind.add(id));
      throw error;
    }
  }

  function pending(id: string, { owner, intent }: Entry): PendingIntent {
    return {
      id,
      intent,
      isOpen: () => isOpen(id),
      async isOver() {
        // A bucket may still carry out a request of a process that has ended.
        const isBounded = store.files !== undefined || intent.versions.length === 0;
        if (isBounded && (await hasLeft(owner, false))) return true;
        const begun = (await store.head(noteOf(id)))?.modifiedMillis ?? 0;
        return silence.isLonger(noteOf(id), begun, times.retainMs);
      },
      async end() {
        await remove(id);
        await notes.removeSigns(id);
      },
    };
  }
  async function entries(): Promise<{ id: string; entry: Entry | undefined }[]> {
    const found: { id: string; entry: Entry | undefined }[] = [];
    for (const id of await notes.ids()) {
      const bytes = await store.get(noteOf(id));
      if (bytes !== undefined) found.push({ id, entry: parseEntry(bytes) });
    }
    return found;
  }

  return {
    async begin(intent) {
      const id = randomUUID();
      const begun = performance.now();
      await write(id, { owner: THIS_PROCESS, intent });
      const { isFresh, stop } = notes.renew(id, times, begun);
      return {
        id,
        intent,
        isOpen: () => isOpen(id),
        isHeld: () => isFresh() && performance.now() - begun < times.lifeMs,
        async end() {
          const hasSigns = await stop();
          await remove(id);
          if (hasSigns) await notes.removeSigns(id);
        },
        abandon() {
          void stop();
          leftBehind.add(id);
        },
        leaveToOthers: async () => void (await stop()),
      };
    },
    async abandoned() {
      const found: PendingIntent[] = [];
      for (const { id, entry } of await entries()) {
        if (entry === undefined) continue;
        if (await notes.isLeft(id, entry.owner, !leftBehind.has(id), times.leaseMs))
          found.push(pending(id, entry));
      }
      return found;
    },
    isOpen,
    ids: async () => new Set(await notes.ids()),
    async removing() {
      const departures = (await entries()).flatMap(({ entry }) => entry?.intent.departures ?? []);
      return new Set(departures.filter(({ remove }) => remove).map(({ location }) => location));
    },
    async broken() {
      const unread = (await entries()).filter(({ entry }) => entry === undefined);
      return [...unread.map(({ id }) => noteOf(id)), ...(await notes.strays())];
    },
  };
}

/**
 * Refuses work at a location that another change is about to remove.
 *
 * @throws LanceError ConcurrentModification
 */
export async function refuseWhileRemoved(journal: Journal, location: string): Promise<void> {
  if (!(await journal.removing()).has(location)) return;
  throw new LanceError(
    "ConcurrentModification",
    "what is at the location is being removed by another change; try again",
  );
}

/** Returns the entry in a file; undefined if it holds none. */
function parseEntry(bytes: Uint8Array): Entry | undefined {
  try {
    const { owner, intent } = JSON.parse(Buffer.from(bytes).toString("utf8")) as Partial<Entry>;
    return owner === undefined || !Array.isArray(intent?.versions) ? undefined : { owner, intent };
  } catch {
    return undefined;
  }
}

/** Context of a change of several files. */
export interface ChangeContext extends TableContext {
  /** Notes of changes of several files. */
  readonly journal: Journal;
  /** Shows at which locations something may still be written. */
  readonly work: WorkNotes;
  readonly jobs: Jobs;
}
