import { randomBytes } from "node:crypto";
import { isAbsolute, relative, resolve, sep } from "node:path";
import { LanceError } from "../../../namespace/errors.ts";
import { type Identifier, joinIdentifier } from "../../../namespace/identifier.ts";
import { keyIn, listNames, type ObjectStore } from "../format/storage.ts";
import { MANIFEST_NAME } from "./manifest-table.ts";

const RESERVED_MARKER = ".lance-reserved";
const DEREGISTERED_MARKER = ".lance-deregistered";
const MARKER = Buffer.from("reserved");
const NOTHING = new Uint8Array();

const isMark = (name: string) => name === RESERVED_MARKER || name === DEREGISTERED_MARKER;

/** How often a mark is tried while others remove the directory. */
const MARK_TRIES = 5;

/** Draws the name of a new table's directory: its own name in the root, a random prefix and the id elsewhere. */
export function newLocation(id: Identifier): string {
  return id.length === 1 ? rootLocation(id) : uniqueLocation(id);
}

/** The location of a table of the root namespace in the public layout. */
export function rootLocation(id: Identifier): string {
  return `${id[0]}.lance`;
}

/** Whether implementations that list directories take a location for a table of the root namespace. */
export function isRootDirectory(location: string): boolean {
  return /^[^/]+\.lance$/.test(location);
}

/** A location that no other table has. */
export function uniqueLocation(id: Identifier): string {
  return `${randomBytes(4).toString("hex")}_${joinIdentifier(id)}`;
}

/**
 * Checks a location that a client wants for a table.
 *
 * @throws LanceError InvalidInput, unless it is a plain relative path that stays below the base.
 */
export function checkNewLocation(location: string): void {
  const parts = location.split("/");
  const plain = parts.every((part) => /^[A-Za-z0-9_.$-]+$/.test(part) && !/^\.+$/.test(part));
  if (plain && parts[0] !== MANIFEST_NAME && !parts.some((part) => part.startsWith("."))) return;
  throw new LanceError(
    "InvalidInput",
    `location ${JSON.stringify(location)} is not a plain path below the catalog`,
  );
}

/** Where the tables of a catalog are. */
export interface Layout {
  /** The path or URI of the directory that holds the manifest and the tables. */
  readonly base: string;
  /** Its key. */
  readonly baseKey: string;
  /**
   * The absolute path or the URI of a location.
   *
   * @throws LanceError InvalidInput, when it would be outside of the base.
   */
  pathOf(location: string): string;
  /**
   * Makes sure that no symbolic link leads a table out of the base.
   *
   * @throws LanceError InvalidInput
   */
  checkNoEscape(location: string): Promise<void>;
  /** Whether there is a dataset, and not just a declaration. */
  hasData(location: string): Promise<boolean>;
  /** The same with declared tables, which have a mark, told from directories that are gone. */
  dataState(location: string): Promise<"written" | "declared" | "lost">;
  /** Whether there is anything at the location. */
  exists(location: string): Promise<boolean>;
  /** Whether there is nothing at the location but marks. */
  isVacant(location: string): Promise<boolean>;
  /** Whether a directory without a row is a table: it has data or is declared, and is not deregistered. */
  isUnlistedTable(location: string): Promise<boolean>;
  /** The `*.lance` directories of the base. */
  tableDirectories(): Promise<string[]>;
  /** Marks a location as declared. */
  reserve(location: string): Promise<void>;
  /** Marks a location as declared that was drawn for one table, and that nobody else writes to. */
  reserveNew(location: string): Promise<void>;
  /**
   * Marks a location that is about to be declared: as declared, too, but so that a directory of the root is not taken
   * for a table before its row is there.
   */
  reserveAhead(location: string): Promise<void>;
  /** Shows what was marked ahead; it makes no directory where there is none any more. */
  reveal(location: string): Promise<void>;
  /** Removes a directory that holds nothing but marks. */
  unreserve(location: string): Promise<void>;
  /** Whether a directory is marked as a declared table, or as no table. */
  isMarked(location: string): Promise<boolean>;
  /** Whether a directory is marked as no table. */
  isDeregistered(location: string): Promise<boolean>;
  /** Marks a directory as no table, or takes the mark away. */
  setDeregistered(location: string, deregistered: boolean): Promise<void>;
  /** Removes a table's directory with all that is in it; false if there was none, or another caller took it. */
  remove(location: string): Promise<boolean>;
}

/** A name that stands for itself in a path and in a URI. */
const PLAIN_NAME = /^[\w$-][\w.$-]*$/;

/** Creates the layout of a base directory, given by its key. */
export function createLayout(store: ObjectStore, baseKey: string): Layout {
  const { files } = store;
  const root = resolve("/", baseKey);

  /** @throws LanceError InvalidInput */
  function keyOf(location: string): string {
    // Nearly all are names of directories in the base, which need no thought.
    if (PLAIN_NAME.test(location)) return keyIn(baseKey, location);
    const plain = decoded(location);
    // Where the engine takes locations for URIs, it undoes their encoding.
    if (staysInside(root, location) && staysInside(root, plain))
      return resolve(root, files === undefined ? plain : location).slice(1);
    throw new LanceError("InvalidInput", `location ${JSON.stringify(location)} is outside of the catalog`);
  }
  const markerOf = (location: string) => `${keyOf(location)}/${DEREGISTERED_MARKER}`;
  async function hasManifest(key: string): Promise<boolean> {
    for await (const page of store.list(`${key}/_versions`))
      if (page.some(({ name }) => name.endsWith(".manifest"))) return true;
    return false;
  }
  const layout: Layout = {
    base: store.uriOf(baseKey),
    baseKey,
    pathOf: (location) => store.uriOf(keyOf(location)),
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
    async isVacant(location) {
      const key = keyOf(location);
      // Most new tables have a directory that nobody has: asking for it takes a fraction of the time that listing takes.
      if (files !== undefined && files.directoryStamp(key) === undefined) return true;
      return (await listNames(store, key)).every(isMark);
    },
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
      // The row is what counts.
      await store.put(`${keyOf(location)}/${RESERVED_MARKER}`, MARKER);
    },
    async reserveNew(location) {
      await layout.checkNoEscape(location);
      // Its name is all that counts, and only bytes would have to be synced for themselves.
      await store.create(`${keyOf(location)}/${RESERVED_MARKER}`, NOTHING);
    },
    async reserveAhead(location) {
      if (!isRootDirectory(location)) return layout.reserve(location);
      await layout.checkNoEscape(location);
      await store.put(markerOf(location), MARKER);
    },
    async reveal(location) {
      if (!isRootDirectory(location) || !(await layout.isDeregistered(location))) return;
      await store.move(markerOf(location), `${keyOf(location)}/${RESERVED_MARKER}`);
    },
    async unreserve(location) {
      const names = await listNames(store, keyOf(location));
      if (names.length > 0 && names.every(isMark)) await layout.remove(location);
    },
    isMarked: async (location) => (await listNames(store, keyOf(location))).some(isMark),
    isDeregistered: async (location) => (await store.head(markerOf(location))) !== undefined,
    async setDeregistered(location, deregistered) {
      if (!deregistered) {
        await store.delete(markerOf(location));
        return;
      }
      for (let tries = 1; await layout.exists(location); tries++) {
        try {
          await store.put(markerOf(location), MARKER);
          return;
        } catch (error) {
          // Whoever removes the directory does so under the hands of this; without one there is nothing to mark.
          if (tries === MARK_TRIES) throw error;
        }
      }
    },
    async remove(location) {
      await layout.checkNoEscape(location);
      const key = keyOf(location);
      if (files !== undefined) {
        // Renamed first, so that a table whose row is gone does not show as a directory half removed.
        const trash = keyIn(baseKey, `.dropped-${randomBytes(8).toString("hex")}`);
        const moved = await files.moveDirectory(key, trash);
        if (moved) await store.deleteDirectory(trash);
        return moved;
      }
      const found = await store.exists(key);
      if (found) {
        // The mark is there as long as anything else, so that it shows as no table, and as a place taken.
        await store.put(markerOf(location), MARKER);
        await store.deleteDirectory(key, DEREGISTERED_MARKER);
      }
      return found;
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

/** The location as a reader would see it that undoes percent-encoding. */
function decoded(location: string): string {
  try {
    return decodeURIComponent(location);
  } catch {
    return location;
  }
}

/** Whether a path is a directory or something in it. */
export function isInside(directory: string, path: string): boolean {
  const way = relative(directory, path);
  return way === "" || !(way === ".." || way.startsWith(`..${sep}`) || isAbsolute(way));
}
