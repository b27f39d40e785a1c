import { randomUUID } from "node:crypto";
import { dirname, relative, resolve } from "node:path";
import { LanceError } from "../../../../namespace/errors.ts";
import { deleteIfSame } from "../../format/decisive-request.ts";
import { keyIn, listNames, type ObjectStore } from "../../format/storage.ts";
import { newStagingKey } from "../../format/table-files.ts";
import { MANIFEST_NAME } from "../manifest/manifest-table.ts";
import { createRemovals } from "./directory-removal.ts";
import type { Layout } from "./layout.ts";
import { decoded, isRootDirectory, refusedLocation, staysInside } from "./location-names.ts";
import {
  claimMark,
  createMarkChanges,
  DEREGISTERED_MARKER,
  departureMark,
  departuresIn,
  isMark,
  MARKS,
  PLAIN_MARK,
  RESERVED_MARKER,
} from "./mark-changes.ts";

const NOTHING = new Uint8Array();

/** A name that needs no encoding in a path or in a URI. */
const PLAIN_NAME = /^[\w$-][\w.$-]*$/;

/** Creates the layout of a base directory, given by its key. */
export function createLayout(store: ObjectStore, baseKey: string): Layout {
  const { files } = store;
  const root = resolve("/", baseKey);

  /**
   * Returns the key of a location; undefined if it leads out of the base or to what the catalog itself keeps there, as in a
   * row of another program.
   */
  function keyInside(location: string): string | undefined {
    // Nearly all locations are names of directories in the base, which need no further checks.
    if (PLAIN_NAME.test(location) && location !== MANIFEST_NAME) return keyIn(baseKey, location);
    // The catalog has locations as they are, but a reader may take one for a part of a URI and decode it.
    return [location, decoded(location)].every(isOfTable) ? resolve(root, location).slice(1) : undefined;
  }
  /** Whether a location may be that of a table. */
  function isOfTable(location: string): boolean {
    if (!staysInside(root, location) || location.includes("\0")) return false;
    const [first = ""] = relative(root, resolve(root, location)).split("/");
    return first !== MANIFEST_NAME && (!first.startsWith(".") || isRootDirectory(first));
  }
  /** @throws LanceError InvalidInput */
  function keyOf(location: string): string {
    const key = keyInside(location);
    if (key === undefined) throw refusedLocation(location);
    return key;
  }
  /** Name of the mark by which a location is claimed. */
  const claimName = (location: string) => (isRootDirectory(location) ? DEREGISTERED_MARKER : RESERVED_MARKER);
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
  const marks = createMarkChanges(store, hasManifest);
  const isLinked = async (location: string) => (await files?.leadsThroughLink(keyOf(location))) ?? false;
  const changeMark: typeof marks.change = async (location, next) => {
    const key = keyInside(location);
    // Nothing is written outside of the base, nor to what a link leads to.
    if (key !== undefined && !(await isLinked(location))) await marks.change(key, next);
  };
  const removals = createRemovals(store, baseKey);
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
      if (await isLinked(location)) {
        throw new LanceError(
          "InvalidInput",
          `location ${JSON.stringify(location)} leads through a symbolic link`,
        );
      }
    },
    async hasData(location) {
      const key = keyInside(location);
      return key !== undefined && hasManifest(key);
    },
    async dataState(location) {
      const key = keyOf(location);
      if (await hasManifest(key)) return "written";
      // It may contain any number of other tables, so it is not listed.
      const marks = await Promise.all(MARKS.map((name) => store.head(`${key}/${name}`)));
      return marks.some((mark) => mark !== undefined) ? "declared" : "lost";
    },
    async exists(location) {
      const key = keyInside(location);
      return key !== undefined && store.exists(key);
    },
    isEmpty: async (location) => (await namesAtNew(keyOf(location))).length === 0,
    async isUnlistedTable(location) {
      const key = keyOf(location);
      const names = await listNames(store, key);
      if (names.includes(DEREGISTERED_MARKER)) return false;
      const isTable =
        names.includes(RESERVED_MARKER) || (names.includes("_versions") && (await hasManifest(key)));
      // As for listings, a link is not a directory of the base.
      return isTable && !(await isLinked(location));
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
      await store.put(`${keyOf(location)}/${RESERVED_MARKER}`, PLAIN_MARK);
    },
    async reserveNew(location) {
      await layout.checkNoEscape(location);
      // Only the name counts, and only content would need a sync of its own.
      await store.create(`${keyOf(location)}/${RESERVED_MARKER}`, NOTHING);
    },
    async claim(location, claim) {
      await layout.checkNoEscape(location);
      const [key, mark] = [keyOf(location), claimName(location)];
      if (!(await putClaim(key, mark, claimMark(claim)))) return false;
      if (files !== undefined || (await listNames(store, key)).length === 1) return true;
      // In a bucket, the location may contain other objects than this mark.
      await deleteIfSame(store, `${key}/${mark}`, claimMark(claim));
      return false;
    },
    isClaimed: async (location) => removals.isClaimed(keyOf(location), DEREGISTERED_MARKER),
    async expireClaim(location, before) {
      const key = markerOf(location);
      const found = await store.getTagged(key);
      const info = await store.head(key);
      if (found === undefined || info === undefined || info.modifiedMillis >= before) return false;
      return (await layout.isClaimed(location)) && store.deleteTagged(key, found.tag);
    },
    reveal: async (location, claim) =>
      !isRootDirectory(location) || marks.show(keyOf(location), claimMark(claim)),
    unclaim: async (location, claim) => removals.removeClaimed(keyOf(location), claimName(location), claim),
    isMarked: async (location) => (await listNames(store, keyOf(location))).some(isMark),
    isDeregistered: async (location) => (await store.head(markerOf(location))) !== undefined,
    putAside: async (location, change) =>
      changeMark(location, async (mark) =>
        departureMark([...departuresIn(mark).filter((each) => each !== change), change]),
      ),
    isPutAside: async (location, change) => removals.isPutAside(keyOf(location), change),
    setDeregistered: async (location, deregistered, isDeparting) =>
      changeMark(location, async (mark) => {
        const left: string[] = [];
        for (const change of departuresIn(mark)) if (await isDeparting(change)) left.push(change);
        return deregistered || left.length > 0 ? departureMark(left) : undefined;
      }),
    async remove(location) {
      await layout.checkNoEscape(location);
      return removals.remove(keyOf(location));
    },
    async removeIf(location, isFormer) {
      await layout.checkNoEscape(location);
      return removals.removeIf(keyOf(location), randomUUID(), isFormer);
    },
    async removePutAside(location, change, isLeft) {
      await layout.checkNoEscape(location);
      return removals.removePutAside(keyOf(location), change, claimName(location), isLeft);
    },
    async completeRemoval(location, change) {
      const key = keyInside(location);
      if (key !== undefined) await removals.complete(key, change);
    },
  };
  return layout;
}
