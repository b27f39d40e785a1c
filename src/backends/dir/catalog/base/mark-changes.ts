import { setTimeout as sleep } from "node:timers/promises";
import { LanceError } from "../../../../namespace/errors.ts";
import { deleteIfSame } from "../../format/decisive-request.ts";
import { UnsyncedError } from "../../format/local/local-errors.ts";
import { listNames, type ObjectStore, type TaggedObject } from "../../format/storage.ts";

/** Number of attempts to change a mark while others change it or remove the directory. */
const TRIES = 10;

/** Longest pause before the second attempt, in milliseconds; it grows with each one. */
const PAUSE_MS = 5;

/** Changes of the mark that hides a directory, given by its key. Each is decided on what is there. */
export interface MarkChanges {
  /**
   * Changes the mark of a directory that contains anything.
   *
   * @param next returns the new content of the mark for the present one; undefined shows the directory, and a directory
   *   without data stays a declared table then
   * @throws LanceError ConcurrentModification if others change it all the time
   */
  change(
    directory: string,
    next: (mark: Uint8Array | undefined) => Promise<Uint8Array | undefined>,
  ): Promise<void>;
  /** Turns a mark into that of a declared table; returns false if the directory has another mark or none. */
  show(directory: string, mark: Uint8Array): Promise<boolean>;
}

/**
 * Creates the changes of marks.
 *
 * @param hasData whether a directory contains a version
 */
export function createMarkChanges(
  store: ObjectStore,
  hasData: (directory: string) => Promise<boolean>,
): MarkChanges {
  const keyOf = (directory: string) => `${directory}/${DEREGISTERED_MARKER}`;

  /** @returns false if another caller was faster */
  async function attempt(directory: string, next: Parameters<MarkChanges["change"]>[1]): Promise<boolean> {
    const key = keyOf(directory);
    const [found, names] = await Promise.all([store.getTagged(key), listNames(store, directory)]);
    const mark = await next(found?.bytes);
    if (mark === undefined) return found === undefined || remove(directory, found, names);
    if (found !== undefined) return isSame(mark, found) || store.replace(key, mark, found.tag);
    // An attempt before makes an empty directory on a disk, if another process removes the former one.
    return names.length === 0 || putNew(directory, mark);
  }
  async function remove(directory: string, found: TaggedObject, names: readonly string[]): Promise<boolean> {
    // A directory without data and without any mark counts as lost. The mark of a claim is the only one of a table
    // whose declarer ended after the row.
    if (names.includes(RESERVED_MARKER) || (names.includes("_versions") && (await hasData(directory))))
      return store.deleteTagged(keyOf(directory), found.tag);
    return changes.show(directory, found.bytes);
  }
  async function putNew(directory: string, mark: Uint8Array): Promise<boolean> {
    const key = keyOf(directory);
    if (!(await store.putIfAbsent(key, mark))) return false;
    if ((await listNames(store, directory)).length > 1) return true;
    // Another caller has removed the directory just before, and the mark would keep its place taken.
    await deleteIfSame(store, key, mark);
    return false;
  }
  const changes: MarkChanges = {
    async change(directory, next) {
      let hasFailed = false;
      for (let tries = 1; tries <= TRIES; tries++) {
        if (tries > 1) await sleep(Math.random() * PAUSE_MS * tries);
        try {
          if (await attempt(directory, next)) return;
        } catch (error) {
          // If the change was made all the same, the next attempt finds it, but not whether a disk has kept it.
          if (hasFailed || error instanceof UnsyncedError) throw error;
          hasFailed = true;
        }
      }
      throw new LanceError("ConcurrentModification", "other changes to the table are in progress; try again");
    },
    async show(directory, mark) {
      const [from, to] = [keyOf(directory), `${directory}/${RESERVED_MARKER}`];
      const tagThere = async () => {
        const found = await store.getTagged(from);
        return found !== undefined && isSame(mark, found) ? found.tag : undefined;
      };
      const tag = await tagThere();
      if (tag === undefined) return false;
      // In a bucket a move takes two requests, and another change may mark the directory in between.
      if (store.files === undefined) return (await store.copy(from, to)) && store.deleteTagged(from, tag);
      try {
        await store.move(from, to);
        return true;
      } catch (error) {
        // Another process has revealed or dropped the table meanwhile.
        if ((await tagThere()) !== undefined) throw error;
        return false;
      }
    },
  };
  return changes;
}

function isSame(mark: Uint8Array, { bytes }: TaggedObject): boolean {
  return Buffer.compare(mark, bytes) === 0;
}

/** Name of the mark of a declared table. */
export const RESERVED_MARKER = ".lance-reserved";

/** Name of the mark that hides a directory of the root from implementations that list directories. */
export const DEREGISTERED_MARKER = ".lance-deregistered";

/** Content of a mark that belongs to no claim and no drop. */
export const PLAIN_MARK = Buffer.from("reserved");

/** Names of all marks. */
export const MARKS: readonly string[] = [RESERVED_MARKER, DEREGISTERED_MARKER];

/** Whether a name in a directory is that of a mark. */
export const isMark = (name: string): boolean => MARKS.includes(name);

const CLAIMED = "claimed ";

/** Returns the content of a claim's mark, which shows whose claim it is. */
export const claimMark = (claim: string): Buffer => Buffer.from(CLAIMED + claim);

/** Whether a mark is that of a claim. */
export const isClaim = (mark: Uint8Array): boolean => Buffer.from(mark).toString().startsWith(CLAIMED);

const DEPARTING = "departing ";

/** Returns the changes in a mark that are about to take the directory from its table. */
export function departuresIn(mark: Uint8Array | undefined): string[] {
  const lines = mark === undefined ? [] : Buffer.from(mark).toString().split("\n");
  return lines.filter((line) => line.startsWith(DEPARTING)).map((line) => line.slice(DEPARTING.length));
}

/** Returns the content of the mark of changes that are about to take the directory; there may be none. */
export function departureMark(changes: readonly string[]): Buffer {
  return changes.length === 0 ? PLAIN_MARK : Buffer.from(changes.map((id) => DEPARTING + id).join("\n"));
}
