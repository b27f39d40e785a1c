import { createHash, randomBytes } from "node:crypto";
import { type FileFeatures, keyIn, listNames, type ObjectStore } from "../../format/storage.ts";
import { hasOtherFiles, isTableFile } from "../../format/table-files.ts";
import { claimMark, DEREGISTERED_MARKER, departuresIn, isClaim, PLAIN_MARK } from "./mark-changes.ts";

/**
 * Removals of directories of tables, given by their keys; see the methods of `Layout`. Only the files of the table go
 * ({@link isTableFile}), and the directory stays if it contains others.
 */
export interface Removals {
  /** Whether a directory contains the mark of a claim, which has this name, and nothing else: its table is about to get its row. */
  isClaimed(key: string, mark: string): Promise<boolean>;
  isPutAside(key: string, change: string): Promise<boolean>;
  remove(key: string): Promise<boolean>;
  /** @param mark the name of the mark of a claim */
  removePutAside(key: string, change: string, mark: string, isLeft: () => Promise<boolean>): Promise<boolean>;
  removeClaimed(key: string, mark: string, claim: string): Promise<boolean>;
  removeIf(key: string, reason: string, isFormerAt: (at: string) => Promise<boolean>): Promise<boolean>;
  complete(key: string, change: string): Promise<void>;
}

/** Creates the removals of a base directory, given by its key. */
export function createRemovals(store: ObjectStore, baseKey: string): Removals {
  const { files } = store;

  async function isPutAside(key: string, change: string): Promise<boolean> {
    return departuresIn(await store.get(`${key}/${DEREGISTERED_MARKER}`)).includes(change);
  }
  async function isClaimed(key: string, mark: string): Promise<boolean> {
    const names = await listNames(store, key);
    const found = names.length === 1 && names[0] === mark ? await store.get(`${key}/${mark}`) : undefined;
    return found !== undefined && isClaim(found);
  }
  /** Where a change looks at a directory of a disk before it removes it; another process finds it by the name. */
  function asideOf(key: string, change: string): string {
    const hash = createHash("sha256").update(`${change} ${key}`).digest("hex");
    return keyIn(baseKey, `.aside-${hash.slice(0, 16)}`);
  }
  /**
   * Removes a directory of a disk; returns false if it did not exist. It is renamed first, so that a partly removed
   * directory does not appear as a table without a row.
   */
  async function discard(key: string, disk: FileFeatures): Promise<boolean> {
    const trash = keyIn(baseKey, `.dropped-${randomBytes(8).toString("hex")}`);
    const moved = await disk.moveDirectory(key, trash);
    if (moved) await store.deleteDirectory(trash, { owns: isTableFile });
    return moved;
  }
  /**
   * Returns the features of a disk if a directory can be renamed before its removal: the files of others in it, which
   * stay, would be missing meanwhile.
   */
  async function renamable(key: string): Promise<FileFeatures | undefined> {
    return files !== undefined && !(await hasOtherFiles(store, key)) ? files : undefined;
  }
  /**
   * Removes a directory unless it has become another one by the time when it is held fast.
   *
   * @param reason the change or the claim because of which it is removed
   * @param isFormerAt whether the directory at a key is the one to remove
   * @param last the name of the object that outlives all others. Default: the mark that hides the directory
   */
  async function removeIf(
    key: string,
    reason: string,
    isFormerAt: (at: string) => Promise<boolean>,
    last = DEREGISTERED_MARKER,
  ): Promise<boolean> {
    const disk = await renamable(key);
    if (disk === undefined)
      return store.deleteDirectory(key, { last, isFormer: () => isFormerAt(key), owns: isTableFile });
    if (!(await isFormerAt(key))) return false;
    // `gc` must not take it for a dropped table before it is known to be one.
    const aside = asideOf(key, reason);
    if (!(await disk.moveDirectory(key, aside))) return false;
    const isFormer = await isFormerAt(aside);
    if (isFormer) await discard(aside, disk);
    else if (!(await disk.moveDirectory(aside, key)) && (await store.exists(aside)))
      throw new Error(`the directory of another table is at ${store.uriOf(aside)}`);
    return isFormer;
  }
  return {
    isClaimed,
    isPutAside,
    async remove(key) {
      const disk = await renamable(key);
      if (disk !== undefined) return discard(key, disk);
      const found = await store.exists(key);
      if (found) {
        // The mark outlives everything else, so that until the end the location is deregistered and taken.
        await store.put(`${key}/${DEREGISTERED_MARKER}`, PLAIN_MARK);
        await store.deleteDirectory(key, { last: DEREGISTERED_MARKER, owns: isTableFile });
      }
      return found;
    },
    removePutAside(key, change, mark, isLeft) {
      // The claim is looked at before the row, which follows it.
      const isFormerAt = async (at: string) =>
        (await isPutAside(at, change)) || (!(await isClaimed(at, mark)) && isLeft());
      return removeIf(key, change, isFormerAt);
    },
    removeClaimed(key, mark, claim) {
      const isFormerAt = async (at: string) => {
        const [names, found] = await Promise.all([listNames(store, at), store.get(`${at}/${mark}`)]);
        return names.length === 1 && found !== undefined && claimMark(claim).equals(found);
      };
      return removeIf(key, claim, isFormerAt, mark);
    },
    removeIf,
    async complete(key, change) {
      const aside = asideOf(key, change);
      if (files !== undefined && (await isPutAside(aside, change))) await discard(aside, files);
    },
  };
}
