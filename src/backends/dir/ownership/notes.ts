import { keyIn, listNames, type ObjectStore } from "../format/storage.ts";
import type { StorageClock } from "../format/storage-clock.ts";
import { hasLeft, type Owner, THIS_PROCESS } from "./owner.ts";
import { createSilence, keepRenewing, type LeaseTimes, type Renewal } from "./renewal.ts";

/**
 * Notes of owners in a directory, a file each. A note is written once and removed once, so the signs of its owner have a file of their own:
 * a late sign must not bring the note back.
 */
export interface Notes {
  /** Returns the key of a note. */
  keyOf(id: string): string;
  /** Returns the ids of all notes. */
  ids(): Promise<string[]>;
  /** Gives signs for a note of this process, until they are stopped. */
  renew(id: string, times: LeaseTimes, acquiredAt: number): Renewal;
  /** Removes the signs of a note. */
  removeSigns(id: string): Promise<void>;
  /** Returns the keys of signs without a note. */
  strays(): Promise<string[]>;
  /**
   * Whether the owner of a note is certainly not at work any longer, or has been silent for too long. False if the note has been removed
   * meanwhile.
   *
   * @param isAtWork whether the work goes on, if the owner is this process
   * @param silentMs the longest silence, by the storage's clock
   */
  isLeft(id: string, owner: Owner, isAtWork: boolean, silentMs: number): Promise<boolean>;
}

const SIGN = ".alive";

/**
 * Opens the notes of a directory, given by its key.
 *
 * @param ending the ending of the names of notes. Default: none
 */
export function createNotes(directory: string, store: ObjectStore, clock: StorageClock, ending = ""): Notes {
  const silence = createSilence(clock);
  const keyOf = (id: string) => keyIn(directory, id + ending);
  const signOf = (id: string) => keyIn(directory, id + SIGN);

  async function idsOf(kind: string): Promise<string[]> {
    const names = (await listNames(store, directory)).filter((name) => name.endsWith(kind));
    return names.map((name) => name.slice(0, name.length - kind.length));
  }
  const ids = async () => (await idsOf(ending)).filter((id) => !id.endsWith(SIGN));
  /** Returns the time of the last sign, in milliseconds since 1970 by the storage's clock; undefined without a note. */
  async function lastSeen(id: string): Promise<number | undefined> {
    const [note, sign] = await Promise.all([keyOf(id), signOf(id)].map((key) => store.head(key)));
    return note && Math.max(note.modifiedMillis, sign?.modifiedMillis ?? 0);
  }
  return {
    keyOf,
    ids,
    // A loss of power that takes a sign ends its owner, too.
    renew: (id, times, acquiredAt) =>
      keepRenewing(() => store.putHint(signOf(id), Buffer.from("")), times, acquiredAt),
    removeSigns: async (id) => void (await store.delete(signOf(id))),
    async strays() {
      const known = new Set(await ids());
      return (await idsOf(SIGN)).filter((id) => !known.has(id)).map(signOf);
    },
    async isLeft(id, owner, isAtWork, silentMs) {
      if (await hasLeft(owner, isAtWork)) return true;
      if (owner.process === THIS_PROCESS.process) return false;
      const seen = await lastSeen(id);
      return seen !== undefined && silence.isLonger(id, seen, silentMs);
    },
  };
}
