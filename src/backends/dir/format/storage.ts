import type { VersionCatalog } from "./version-catalog.ts";

/** Facts that a store has about an object. */
export interface ObjectInfo {
  readonly key: string;
  /** In bytes. */
  readonly size: number;
  /** In milliseconds since 1970. */
  readonly modifiedMillis: number;
  readonly eTag: string | undefined;
}

/** A child of a directory in a listing. */
export interface ObjectEntry {
  /** Last part of the key. */
  readonly name: string;
  /** Set if the listing includes it without another request. */
  readonly info?: ObjectInfo;
  /** Whether it is a directory instead of an object. Default: false. */
  readonly isDirectory?: boolean;
}

/** The end of an object. */
export interface ObjectTail {
  /** Size of the whole object, in bytes. */
  readonly size: number;
  readonly bytes: Uint8Array;
}

/** An object, and what distinguishes this state of it from all others. */
export interface TaggedObject {
  readonly bytes: Uint8Array;
  /** Changes with every write of the object. */
  readonly tag: string;
}

/** Options of {@link ObjectStore.deleteDirectory}. */
export interface DirectoryDeletion {
  /** Name of an object that outlives all others in the directory, even after a loss of power. Default: none. */
  readonly last?: string;
  /** Called when it is known what is in the directory; false keeps that. Default: true. */
  readonly isFormer?: () => Promise<boolean>;
  /**
   * Whether an object is deleted, by its path relative to the directory; the others stay, and so do empty directories,
   * whose paths end in a slash. Default: all.
   */
  readonly owns?: (path: string) => boolean;
}

/**
 * The operations on storage that a catalog and the table format need. A local disk implements them, and so does an
 * object store with conditional writes. Everything else in the directory backend, except the engine, uses files only
 * through them.
 *
 * Keys are `/`-separated paths without a leading slash; a directory is the part of a key before a slash, and the empty
 * key is the root directory. Reads see every write that finished before they began. A missing object is `undefined` or
 * an empty listing. All other failures are thrown, as LanceError if they are known: Throttling, ServiceUnavailable, and
 * Unsupported for storage that cannot be written.
 *
 * A finished write survives a loss of power, and so does the answer that an object existed or did not. On a disk a
 * write can fail with UnsyncedError: readers see it, and a loss of power may undo it.
 */
export interface ObjectStore {
  /**
   * Whether listings are in ascending order of the objects' names. If they are not, the format's writers maintain
   * `latest_version_hint.json`.
   */
  readonly listsInOrder: boolean;
  /**
   * Whether the tags of {@link getTagged} are the entity tags (`ETag`) that every client of the store receives, with or without quotes.
   * Default: false
   */
  readonly hasEntityTags?: boolean;
  /** Returns the location of a key as the engine and other implementations name it: a path or a URI. */
  uriOf(key: string): string;
  /** Returns the key of a location that {@link uriOf} returned. */
  keyOf(uri: string): string;
  get(key: string): Promise<Uint8Array | undefined>;
  /** Reads an object that {@link replace} or {@link deleteTagged} may change then. */
  getTagged(key: string): Promise<TaggedObject | undefined>;
  /** Streams the bytes of an object; a failure may appear only with the first bytes. */
  getStream(key: string): Promise<AsyncIterable<Uint8Array> | undefined>;
  /** Returns the last `length` bytes, or all if there are fewer. */
  getTail(key: string, length: number): Promise<ObjectTail | undefined>;
  /** Returns the bytes from `start` to before `end`, or fewer if the object ends earlier. */
  getRange(key: string, start: number, end: number): Promise<Uint8Array | undefined>;
  head(key: string): Promise<ObjectInfo | undefined>;
  /**
   * Lists the objects and the directories directly in a directory, in pages.
   *
   * @param pageSize maximum number of entries of a page, where a page is a request. Default: the service's
   */
  list(directory: string, pageSize?: number): AsyncIterable<readonly ObjectEntry[]>;
  /** Whether a directory contains anything; on a disk an empty directory counts. */
  exists(directory: string): Promise<boolean>;
  /**
   * Writes an object with a private key, which no reader knows before the write has finished. On a disk it waits less
   * often than {@link put}, and a crash may leave a part of the object.
   */
  create(key: string, bytes: Uint8Array): Promise<void>;
  /** Writes an object whole, and replaces an existing one. */
  put(key: string, bytes: Uint8Array): Promise<void>;
  /**
   * Writes an object like {@link put}, but not durably: a loss of power may restore an older object, leave an empty one
   * or none, and remove the directories that were created for it.
   */
  putHint(key: string, bytes: Uint8Array): Promise<void>;
  /** Writes bytes as they arrive, like {@link put}; if the source fails or the signal fires, it leaves no object. */
  putStream(key: string, bytes: AsyncIterable<Uint8Array>, signal?: AbortSignal): Promise<void>;
  /**
   * Writes an object whole, unless one exists.
   *
   * If the answer to a first attempt is lost, the object's bytes show which writer wrote it, so writers that compete
   * for a key should write different bytes. A thrown failure leaves open whether the object was written.
   *
   * @param after resolves when everything that must be stored before the object gets its name is stored; if it fails,
   *   the write fails. Default: resolved
   * @param onUnclear is called if an attempt was given up that may still write the object, even after its deletion.
   *   With `wait`, no attempt follows such a one: the object is written by a single request or, as far as is known, not
   *   at all, and what is acknowledged does not come back after its deletion. Default: nobody has to know
   * @returns false if an object exists; it is not changed
   */
  putIfAbsent(
    key: string,
    bytes: Uint8Array,
    after?: Promise<unknown>,
    onUnclear?: (() => void) | "wait",
  ): Promise<boolean>;
  /**
   * Replaces an object whole, unless it was written or deleted since it was read with a tag. An attempt that was given
   * up does not land over a later write. A thrown failure leaves open whether the object was replaced.
   *
   * A disk compares the tag just before it replaces the object, so of two processes at the same moment both succeed,
   * and the last one counts. So does a service that does not know the condition.
   *
   * @returns false if the object has changed; it stays as it is
   */
  replace(key: string, bytes: Uint8Array, tag: string): Promise<boolean>;
  /** @returns false if the object did not exist; a store that cannot know returns true */
  delete(key: string): Promise<boolean>;
  /**
   * Deletes an object, unless it was written since it was read with a tag; an attempt that was given up does not delete a
   * later object. A disk and services compare as in {@link replace}.
   *
   * @returns false if the object has changed or does not exist
   */
  deleteTagged(key: string, tag: string): Promise<boolean>;
  /** Deletes objects, in any order; those that do not exist are skipped. On a disk a directory is synced once for all. */
  deleteAll(keys: readonly string[]): Promise<void>;
  /**
   * Copies an object to a key that has none; the bytes of an object in a bucket do not pass through this process.
   *
   * @returns false if the object does not exist
   */
  copy(from: string, to: string): Promise<boolean>;
  /**
   * Moves an object to another key, and replaces an existing one; the bytes do not pass through this process. The
   * object survives a loss of power then, even if the engine wrote it. It counts as written when it was moved.
   */
  move(from: string, to: string): Promise<void>;
  /**
   * Deletes everything that is in a directory when the call begins; succeeds if there is nothing. After a loss of power
   * some of it may exist again, which must be harmless.
   *
   * @returns the answer of `isFormer`
   */
  deleteDirectory(directory: string, options?: DirectoryDeletion): Promise<boolean>;
  /** Features that only file systems have. Default: none. */
  readonly files?: FileFeatures;
  /** Catalog that commits the versions of a table in it. Default: the files in `_versions` are the versions. */
  readonly versions?: VersionCatalog;
}

/** State of a directory according to the file system; the times have the resolution of the file system. */
export interface DirectoryStamp {
  /** Distinguishes the directory from a later one in its place. */
  readonly identity: bigint;
  /** When its entries changed, in nanoseconds since 1970; any user can set it. */
  readonly modifiedNs: bigint;
  /** When anything in its status changed, in nanoseconds since 1970; users cannot set it. */
  readonly changedNs: bigint;
}

/** Features that file systems have beyond an {@link ObjectStore}. */
export interface FileFeatures {
  /** Creates a directory and its parents; succeeds if it exists. */
  makeDirectory(directory: string): Promise<void>;
  /** Renames a directory atomically; returns false if the target exists or the source does not. */
  moveDirectory(from: string, to: string): Promise<boolean>;
  /**
   * Gives an object a second key, not durably.
   *
   * @returns false if the object does not exist, or if the file system does not allow it
   */
  link(from: string, to: string): Promise<boolean>;
  /** Makes objects durable, with their names, that others such as the engine wrote into a directory. */
  syncObjects(keys: readonly string[], directory: string): Promise<void>;
  /** Makes everything durable that others wrote into a directory, except for the directory's own name. */
  syncTree(directory: string): Promise<void>;
  /**
   * Returns a stamp that changes when entries are added or removed; synchronous. Undefined if the directory does not
   * exist.
   */
  directoryStamp(directory: string): DirectoryStamp | undefined;
  /** Returns the names of the objects and directories directly in a directory; synchronous. Undefined for a missing directory. */
  namesNow(directory: string): readonly string[] | undefined;
  /** Returns the end of a file that was just written, and is in the system's memory; synchronous. Undefined for a missing file. */
  tailNow(key: string, length: number): ObjectTail | undefined;
  /** Returns a stamp that changes when a file is replaced or written again; synchronous. */
  fileStamp(key: string): string | undefined;
  /**
   * Lists the files directly in a directory that have no name yet, because their writer is at work on them or has
   * ended. They are not in any listing.
   */
  temporaries(directory: string): Promise<ObjectInfo[]>;
  /** Whether a symbolic link is on the way to a key. */
  leadsThroughLink(key: string): Promise<boolean>;
}

/** Returns all names directly in a directory, in the order of the listing. */
export async function listNames(store: ObjectStore, directory: string): Promise<string[]> {
  const names: string[] = [];
  for await (const page of store.list(directory)) for (const entry of page) names.push(entry.name);
  return names;
}

/** Returns the names of all objects in a directory and in those below it, relative to the directory. */
export async function listTree(store: ObjectStore, directory: string): Promise<string[]> {
  const names: string[] = [];
  for await (const page of store.list(directory)) {
    for (const { name, isDirectory } of page) {
      if (!isDirectory) names.push(name);
      else for (const below of await listTree(store, keyIn(directory, name))) names.push(`${name}/${below}`);
    }
  }
  return names;
}

/** Returns the key of a name in a directory. */
export function keyIn(directory: string, name: string): string {
  return directory === "" ? name : `${directory}/${name}`;
}
