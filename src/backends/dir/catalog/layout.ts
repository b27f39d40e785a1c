import { randomBytes } from "node:crypto";
import { access, mkdir, readdir, realpath, rename, rm, writeFile } from "node:fs/promises";
import { isAbsolute, join, relative, resolve, sep } from "node:path";
import { LanceError } from "../../../namespace/errors.ts";
import { type Identifier, joinIdentifier } from "../../../namespace/identifier.ts";
import { MANIFEST_NAME } from "./manifest.ts";

/** The directory that new catalogs keep their manifest and their tables in. */
const DATA_DIRECTORY = "data";

const RESERVED_MARKER = ".lance-reserved";
const DEREGISTERED_MARKER = ".lance-deregistered";
const MARKER_TEXT = "reserved";

/**
 * Finds the base directory of a catalog and creates it.
 *
 * It is `<root>/data`, unless the root already is a Lance catalog; `tableDirectory` names another one below the
 * root, `.` for the root itself.
 *
 * @returns the real path, without symbolic links
 * @throws Error with one clear line, when the root cannot be used.
 */
export async function openBase(root: string, tableDirectory: string | undefined): Promise<string> {
  try {
    await mkdir(root, { recursive: true });
    const names = await readdir(root);
    const isCatalog = names.some((name) => name === MANIFEST_NAME || name.endsWith(".lance"));
    const base = resolve(root, tableDirectory ?? (isCatalog ? "." : DATA_DIRECTORY));
    if (!isInside(resolve(root), base)) throw new Error("the table directory is outside of it");
    await mkdir(base, { recursive: true });
    return await realpath(base);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`cannot use ${root} as the directory of a catalog: ${reason}`, { cause: error });
  }
}

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

/** Where tables are on the disk. */
export interface Layout {
  readonly base: string;
  /**
   * The absolute path of a location.
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
  /** Whether there is anything at the location. */
  exists(location: string): Promise<boolean>;
  /** Whether a directory without a row is a table: it has data or is declared, and is not deregistered. */
  isUnlistedTable(location: string): Promise<boolean>;
  /** The `*.lance` directories of the base. */
  tableDirectories(): Promise<string[]>;
  /** Marks a location as declared. */
  reserve(location: string): Promise<void>;
  /** Marks a directory as no table, or takes the mark away. */
  setDeregistered(location: string, deregistered: boolean): Promise<void>;
  /** Removes a table's directory with all that is in it; a missing one is fine. */
  remove(location: string): Promise<void>;
}

/** Creates the layout of a base directory. */
export function createLayout(base: string): Layout {
  function pathOf(location: string): string {
    if (staysInside(base, location) && staysInside(base, decoded(location))) return resolve(base, location);
    throw new LanceError("InvalidInput", `location ${JSON.stringify(location)} is outside of the catalog`);
  }
  const has = (location: string, name: string) => canAccess(join(pathOf(location), name));
  const layout: Layout = {
    base,
    pathOf,
    async checkNoEscape(location) {
      const path = pathOf(location);
      const real = await realpathOfExisting(path);
      if (real !== path) {
        throw new LanceError(
          "InvalidInput",
          `location ${JSON.stringify(location)} leads through a symbolic link`,
        );
      }
    },
    async hasData(location) {
      try {
        return (await readdir(join(pathOf(location), "_versions"))).some((name) =>
          name.endsWith(".manifest"),
        );
      } catch {
        return false;
      }
    },
    exists: (location) => canAccess(pathOf(location)),
    async isUnlistedTable(location) {
      if (await has(location, DEREGISTERED_MARKER)) return false;
      return (await has(location, RESERVED_MARKER)) || (await layout.hasData(location));
    },
    async tableDirectories() {
      const entries = await readdir(base, { withFileTypes: true });
      return entries
        .filter((entry) => entry.isDirectory() && entry.name.endsWith(".lance"))
        .map((entry) => entry.name);
    },
    async reserve(location) {
      await layout.checkNoEscape(location);
      await mkdir(pathOf(location), { recursive: true });
      await writeFile(join(pathOf(location), RESERVED_MARKER), MARKER_TEXT);
    },
    async setDeregistered(location, deregistered) {
      const marker = join(pathOf(location), DEREGISTERED_MARKER);
      if (!deregistered) await rm(marker, { force: true });
      else if (await layout.exists(location)) await writeFile(marker, MARKER_TEXT);
    },
    async remove(location) {
      await layout.checkNoEscape(location);
      // Renamed first, so that a table whose row is gone does not show as a directory half removed.
      const trash = join(base, `.dropped-${randomBytes(8).toString("hex")}`);
      try {
        await rename(pathOf(location), trash);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
        throw error;
      }
      await rm(trash, { recursive: true, force: true });
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
function isInside(directory: string, path: string): boolean {
  const way = relative(directory, path);
  return way === "" || !(way === ".." || way.startsWith(`..${sep}`) || isAbsolute(way));
}

async function canAccess(path: string): Promise<boolean> {
  try {
    await access(path);
    return true;
  } catch {
    return false;
  }
}

/** The real path of what exists of a path, with the rest as it is. */
async function realpathOfExisting(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    const parent = resolve(path, "..");
    return join(parent === path ? path : await realpathOfExisting(parent), relative(parent, path));
  }
}
