import { createHash, randomBytes } from "node:crypto";
import { dirname, isAbsolute, relative, resolve, sep } from "node:path";
import { LanceError } from "../../../namespace/errors.ts";
import { newStagingKey } from "../format/staging-key.ts";
import { type FileFeatures, keyIn, listNames, type ObjectStore } from "../format/storage.ts";
import { isRootDirectory } from "./location-names.ts";
import { decoded, refusedLocation } from "./location-rules.ts";

const RESERVED_MARKER = ".lance-reserved";
const DEREGISTERED_MARKER = ".lance-deregistered";
const MARKER = Buffer.from("reserved");
const NOTHING = new Uint8Array();

const CLAIMED = "claimed ";

/** Returns the content of a claim's mark, which shows whose claim it is. */
const claimMark = (claim: string) => Buffer.from(CLAIMED + claim);

const DEPARTING = "departing ";

/** Returns the content of the mark of a directory that a change removes after its commit. */
const departingMark = (change: string) => Buffer.from(DEPARTING + change);

const isClaim = (mark: Uint8Array) => Buffer.from(mark).toString().startsWith(CLAIMED);

const isMark = (name: string) => name === RESERVED_MARKER || name === DEREGISTERED_MARKER;

/** Number of attempts to mark a directory while others remove it. */
const MARK_TRIES = 5;

/** Directories of the tables of a catalog, and their marks. */
export interface Layout {
  /** Path or URI of the directory that contains the manifest and the tables. */
  readonly base: string;
  /** Key of the base directory. */
  readonly baseKey: string;
  /**
   * Returns the absolute path or the URI of a location.
   *
   * @throws LanceError InvalidInput if it would be outside of the base.
   */
  pathOf(location: string): string;
  /** Returns the location at an absolute path or a URI; undefined if it is not below the base. */
  relativeTo(path: string): string | undefined;
  /**
   * Checks that no symbolic link leads a table out of the base.
   *
   * @throws LanceError InvalidInput
   */
  checkNoEscape(location: string): Promise<void>;
  /** Whether a location contains a dataset, and not only a declaration. */
  hasData(location: string): Promise<boolean>;
  /**
   * Like {@link hasData}, but distinguishes declared tables, which have a mark, from directories that have disappeared.
   */
  dataState(location: string): Promise<"written" | "declared" | "lost">;
  /** Whether a location contains anything. */
  exists(location: string): Promise<boolean>;
  /** Whether a location contains nothing, not even marks, so that a table may {@link claim} it. */
  isEmpty(location: string): Promise<boolean>;
  /** Whether a directory without a row is a table: it has data or is declared, and is not deregistered. */
  isUnlistedTable(location: string): Promise<boolean>;
  /** Lists the `*.lance` directories of the base. */
  tableDirectories(): Promise<string[]>;
  /** Marks a location as declared. */
  reserve(location: string): Promise<void>;
  /** Marks a location as declared that was drawn for a single table and that no other writer uses. */
  reserveNew(location: string): Promise<void>;
  /**
   * Takes an empty location for a table that is about to be declared. Exactly one of several callers gets it, and none
   * while a former table's directory is being removed. Until {@link reveal}, implementations that list directories do
   * not treat a directory of the root as a table.
   *
   * @param claim a text that no other claim has
   * @returns false if the location contains anything, or another caller has claimed it
   */
  claim(location: string, claim: string): Promise<boolean>;
  /** Whether a location of the root contains the mark of a claim and nothing else. */
  isClaimed(location: string): Promise<boolean>;
  /**
   * Takes an old claim of a root location away, so that the location is empty and others may claim it. Call it for a
   * location without a row: an owner that is only slow finds its mark gone when it has its row, and puts another one.
   *
   * @param before time before which the claim was made, in milliseconds since 1970 by the clock of the storage
   * @returns false without an old claim, or if another caller was faster
   */
  expireClaim(location: string, before: number): Promise<boolean>;
  /**
   * Shows a claimed directory to implementations that list directories.
   *
   * @param claim the text of the claim. Default: any mark that hides the directory is removed
   * @returns false if the directory has another mark or none, for example because the table has been dropped
   */
  reveal(location: string, claim?: string): Promise<boolean>;
  /** Removes a directory that contains nothing except marks. */
  unreserve(location: string): Promise<void>;
  /** Whether a directory is marked as a declared table or as deregistered. */
  isMarked(location: string): Promise<boolean>;
  /** Whether a directory is marked as deregistered. */
  isDeregistered(location: string): Promise<boolean>;
  /**
   * Marks a directory as deregistered that a change removes after its commit, beside other changes that are about to. A
   * table that another one follows in the same place has another mark.
   *
   * @param change the id of the change
   */
  putAside(location: string, change: string): Promise<void>;
  /** Whether a change has {@link putAside} the directory. */
  isPutAside(location: string, change: string): Promise<boolean>;
  /** Marks a directory as deregistered, or removes the mark; a directory without data stays a declared table then. */
  setDeregistered(location: string, deregistered: boolean): Promise<void>;
  /**
   * Removes a table's directory with everything in it; returns false if it did not exist, or if another caller removed
   * it.
   */
  remove(location: string): Promise<boolean>;
  /**
   * Like {@link remove}, but only the directory that a change has {@link putAside}: it may have been removed already, and
   * the location may belong to another table at any moment of this call.
   *
   * @param isSafe whether the directory is that one, whatever its mark says; asked when what is in it is known and
   *   nothing has been removed
   */
  removePutAside(location: string, change: string, isSafe: () => boolean): Promise<boolean>;
  /** Completes a {@link removePutAside} of a process that ended in the middle of it, whatever is at the location now. */
  completeRemoval(location: string, change: string): Promise<void>;
}

/** A name that needs no encoding in a path or in a URI. */
const PLAIN_NAME = /^[\w$-][\w.$-]*$/;

/** Creates the layout of a base directory, given by its key. */
export function createLayout(store: ObjectStore, baseKey: string): Layout {
  const { files } = store;
  const root = resolve("/", baseKey);

  /** @throws LanceError InvalidInput */
  function keyOf(location: string): string {
    // Nearly all locations are names of directories in the base, which need no further checks.
    if (PLAIN_NAME.test(location)) return keyIn(baseKey, location);
    // The catalog has locations as they are, but a reader may take one for a part of a URI and decode it.
    if (staysInside(root, location) && staysInside(root, decoded(location)))
      return resolve(root, location).slice(1);
    throw refusedLocation(location);
  }
  const markerOf = (location: string) => `${keyOf(location)}/${DEREGISTERED_MARKER}`;
  async function hasManifest(key: string): Promise<boolean> {
    for await (const page of store.list(`${key}/_versions`))
      if (page.some(({ name }) => name.endsWith(".manifest"))) return true;
    return false;
  }
  /**
   * Lists the directory of a new table. Most do not exist yet, and checking that takes a fraction of the time of a
   * listing.
   */
  async function namesAtNew(key: string): Promise<string[]> {
    if (files !== undefined && files.directoryStamp(key) === undefined) return [];
    return listNames(store, key);
  }
  /** Puts the mark of a claim where nothing is; returns false if another caller was faster. */
  async function putClaim(key: string, mark: string, bytes: Uint8Array): Promise<boolean> {
    if (files === undefined) return store.putIfAbsent(`${key}/${mark}`, bytes);
    const staging = newStagingKey(baseKey);
    await store.create(`${staging}/${mark}`, bytes);
    await files.makeDirectory(dirname(key));
    // A directory can only replace an empty one.
    const moved = await files.moveDirectory(staging, key);
    if (!moved) await store.deleteDirectory(staging);
    return moved;
  }
  /** Whether a change has put a directory aside. */
  async function isPutAsideAt(key: string, change: string): Promise<boolean> {
    const mark = await store.get(`${key}/${DEREGISTERED_MARKER}`);
    return (
      mark !== undefined &&
      Buffer.from(mark)
        .toString()
        .split("\n")
        .includes(DEPARTING + change)
    );
  }
  /** Adds a change to the marks of a directory; returns false if another caller has changed them meanwhile. */
  async function addDeparture(location: string, change: string): Promise<boolean> {
    const key = markerOf(location);
    const [found, exists] = await Promise.all([store.getTagged(key), layout.exists(location)]);
    const own = departingMark(change);
    if (found === undefined) return !exists || store.putIfAbsent(key, own);
    const isOfDepartures = Buffer.from(found.bytes).toString().startsWith(DEPARTING);
    const mark = isOfDepartures ? Buffer.concat([found.bytes, Buffer.from("\n"), own]) : own;
    return store.replace(key, mark, found.tag);
  }
  /** Where a change looks at a directory of a disk before it removes it; another process finds it by the name. */
  function asideOf(location: string, change: string): string {
    const hash = createHash("sha256").update(`${change} ${location}`).digest("hex");
    return keyIn(baseKey, `.aside-${hash.slice(0, 16)}`);
  }
  /**
   * Removes a directory of a disk; returns false if it did not exist. It is renamed first, so that a partly removed
   * directory does not appear as a table without a row.
   */
  async function discard(key: string, disk: FileFeatures): Promise<boolean> {
    const trash = keyIn(baseKey, `.dropped-${randomBytes(8).toString("hex")}`);
    const moved = await disk.moveDirectory(key, trash);
    if (moved) await store.deleteDirectory(trash);
    return moved;
  }
  /** Turns the mark that hides a directory into the one of a declared table; see {@link Layout.reveal}. */
  async function show(location: string, claim?: string): Promise<boolean> {
    const isHidden = async () => {
      const mark = await store.get(markerOf(location));
      return mark !== undefined && (claim === undefined || claimMark(claim).equals(mark));
    };
    if (!(await isHidden())) return false;
    try {
      await store.move(markerOf(location), `${keyOf(location)}/${RESERVED_MARKER}`);
      return true;
    } catch (error) {
      // Another process has revealed or dropped the table meanwhile.
      if (await isHidden()) throw error;
      return false;
    }
  }
  const layout: Layout = {
    base: store.uriOf(baseKey),
    baseKey,
    pathOf: (location) => store.uriOf(keyOf(location)),
    relativeTo(path) {
      const prefix = store.uriOf(keyIn(baseKey, "x")).slice(0, -1);
      if (!path.startsWith(prefix)) return undefined;
      const rest = path.slice(prefix.length);
      return files === undefined ? decoded(rest) : rest;
    },
    async checkNoEscape(location) {
      if (await files?.leadsThroughLink(keyOf(location))) {
        throw new LanceError(
          "InvalidInput",
          `location ${JSON.stringify(location)} leads through a symbolic link`,
        );
      }
    },
    hasData: async (location) => hasManifest(keyOf(location)),
    async dataState(location) {
      const key = keyOf(location);
      if (await hasManifest(key)) return "written";
      return (await listNames(store, key)).some(isMark) ? "declared" : "lost";
    },
    exists: async (location) => store.exists(keyOf(location)),
    isEmpty: async (location) => (await namesAtNew(keyOf(location))).length === 0,
    async isUnlistedTable(location) {
      const key = keyOf(location);
      const names = await listNames(store, key);
      if (names.includes(DEREGISTERED_MARKER)) return false;
      return names.includes(RESERVED_MARKER) || (names.includes("_versions") && (await hasManifest(key)));
    },
    async tableDirectories() {
      const names: string[] = [];
      for await (const page of store.list(baseKey))
        for (const { name, isDirectory } of page)
          if (isDirectory && name.endsWith(".lance")) names.push(name);
      return names;
    },
    async reserve(location) {
      await layout.checkNoEscape(location);
      // The content does not matter, because the row determines the state.
      await store.put(`${keyOf(location)}/${RESERVED_MARKER}`, MARKER);
    },
    async reserveNew(location) {
      await layout.checkNoEscape(location);
      // Only the name counts, and only content would need a sync of its own.
      await store.create(`${keyOf(location)}/${RESERVED_MARKER}`, NOTHING);
    },
    async claim(location, claim) {
      await layout.checkNoEscape(location);
      const mark = isRootDirectory(location) ? DEREGISTERED_MARKER : RESERVED_MARKER;
      const key = keyOf(location);
      if (!(await putClaim(key, mark, claimMark(claim)))) return false;
      if (files !== undefined || (await listNames(store, key)).length === 1) return true;
      // In a bucket, the location may contain other objects than this mark.
      await store.delete(`${key}/${mark}`);
      return false;
    },
    async isClaimed(location) {
      const names = await listNames(store, keyOf(location));
      if (names.length !== 1 || names[0] !== DEREGISTERED_MARKER) return false;
      const mark = await store.get(markerOf(location));
      return mark !== undefined && isClaim(mark);
    },
    async expireClaim(location, before) {
      const info = await store.head(markerOf(location));
      if (info === undefined || info.modifiedMillis >= before) return false;
      return (await layout.isClaimed(location)) && store.delete(markerOf(location));
    },
    reveal: async (location, claim) => !isRootDirectory(location) || show(location, claim),
    async unreserve(location) {
      const names = await listNames(store, keyOf(location));
      if (names.length > 0 && names.every(isMark)) await layout.remove(location);
    },
    isMarked: async (location) => (await listNames(store, keyOf(location))).some(isMark),
    isDeregistered: async (location) => (await store.head(markerOf(location))) !== undefined,
    async putAside(location, change) {
      for (let tries = 1; tries < MARK_TRIES; tries++) if (await addDeparture(location, change)) return;
      // If a process takes this change over, it leaves a directory with the mark of another one.
      await layout.setDeregistered(location, true);
    },
    isPutAside: async (location, change) => isPutAsideAt(keyOf(location), change),
    async setDeregistered(location, deregistered) {
      if (!deregistered) {
        const key = keyOf(location);
        const names = await listNames(store, key);
        // A directory without data and without any mark counts as lost. The mark of a claim is the only one of a table
        // whose declarer ended after the row.
        if (names.includes(RESERVED_MARKER) || (names.includes("_versions") && (await hasManifest(key))))
          await store.delete(markerOf(location));
        else await show(location);
        return;
      }
      for (let tries = 1; await layout.exists(location); tries++) {
        try {
          await store.put(markerOf(location), MARKER);
          return;
        } catch (error) {
          // Another process may be removing the directory at the same time; after that there is nothing to mark.
          if (tries === MARK_TRIES) throw error;
        }
      }
    },
    async remove(location) {
      await layout.checkNoEscape(location);
      const key = keyOf(location);
      if (files !== undefined) return discard(key, files);
      const found = await store.exists(key);
      if (found) {
        // The mark outlives everything else, so that until the end the location is deregistered and taken.
        await store.put(markerOf(location), MARKER);
        await store.deleteDirectory(key, DEREGISTERED_MARKER);
      }
      return found;
    },
    async removePutAside(location, change, isSafe) {
      await layout.checkNoEscape(location);
      const key = keyOf(location);
      const isFormerAt = async (at: string) => isSafe() || isPutAsideAt(at, change);
      if (!(await isFormerAt(key))) return false;
      if (files === undefined) return store.deleteDirectory(key, DEREGISTERED_MARKER, () => isFormerAt(key));
      // `gc` must not take it for a dropped table before it is known to be one.
      const aside = asideOf(location, change);
      if (!(await files.moveDirectory(key, aside))) return false;
      const isFormer = await isFormerAt(aside);
      if (isFormer) await discard(aside, files);
      else if (!(await files.moveDirectory(aside, key)) && (await store.exists(aside)))
        throw new Error(`the directory of another table is at ${store.uriOf(aside)}`);
      return isFormer;
    },
    async completeRemoval(location, change) {
      const aside = asideOf(location, change);
      if (files !== undefined && (await isPutAsideAt(aside, change))) await discard(aside, files);
    },
  };
  return layout;
}

/** Whether a relative location stays below a directory. */
function staysInside(directory: string, location: string): boolean {
  const path = resolve(directory, location);
  return (
    !isAbsolute(location) && !location.includes("://") && path !== directory && isInside(directory, path)
  );
}

/** Whether a path is a directory or something inside it. */
export function isInside(directory: string, path: string): boolean {
  const way = relative(directory, path);
  return way === "" || !(way === ".." || way.startsWith(`..${sep}`) || isAbsolute(way));
}
