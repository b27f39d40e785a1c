/** What a store knows of an object. */
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
  /** The last part of the key. */
  readonly name: string;
  /** Set where the listing says it without another request. */
  readonly info?: ObjectInfo;
  /** Whether it is a directory, and no object. Default: false. */
  readonly isDirectory?: boolean;
}

/** The end of an object. */
export interface ObjectTail {
  /** The whole object's size, in bytes. */
  readonly size: number;
  readonly bytes: Uint8Array;
}

/**
 * The operations on storage that a catalog and the table format need: a local disk has them, and so has an
 * object store with conditional writes. Nothing else of the directory backend touches files, but the engine.
 *
 * Keys are `/`-separated paths without a leading slash; a directory is what keys have before a slash, and the
 * empty key is the directory of everything. Reads see every write that finished before they began. A missing
 * object is `undefined` or an empty listing. All other failures are thrown as LanceError where they are
 * known: Throttling, ServiceUnavailable, and Unsupported for storage that cannot be written.
 *
 * A write that has finished survives a loss of power, and so does the answer that an object was there or was not. On
 * a disk a write can fail with UnsyncedError: readers see it, and a loss of power may undo it.
 */
export interface ObjectStore {
  /**
   * Whether listings come in ascending order of the objects' names. Where they do not, the format's writers keep
   * `latest_version_hint.json` up to date.
   */
  readonly listsInOrder: boolean;
  /** The location of a key as the engine and other implementations know it: a path, or a URI. */
  uriOf(key: string): string;
  /** The key of a location that {@link uriOf} gave. */
  keyOf(uri: string): string;
  get(key: string): Promise<Uint8Array | undefined>;
  /** The bytes of an object as they come; the failure to get one may show with the first. */
  getStream(key: string): Promise<AsyncIterable<Uint8Array> | undefined>;
  /** The last `length` bytes, or all if there are fewer. */
  getTail(key: string, length: number): Promise<ObjectTail | undefined>;
  /** The bytes from `start` to before `end`, or fewer if the object ends earlier. */
  getRange(key: string, start: number, end: number): Promise<Uint8Array | undefined>;
  head(key: string): Promise<ObjectInfo | undefined>;
  /** The objects and the directories directly in a directory, in pages. */
  list(directory: string): AsyncIterable<readonly ObjectEntry[]>;
  /** Whether there is anything in a directory; on a disk an empty one counts. */
  exists(directory: string): Promise<boolean>;
  /**
   * Writes an object whose key nobody knows before the write has finished. On a disk it waits less often than
   * {@link put}, and a crash may leave a part of the object.
   */
  create(key: string, bytes: Uint8Array): Promise<void>;
  /** Writes an object whole, in place of one that is there. */
  put(key: string, bytes: Uint8Array): Promise<void>;
  /**
   * The same for what readers can do without: a loss of power may bring an older object back, or leave an empty one
   * or none, and take the directories that were made for it.
   */
  putHint(key: string, bytes: Uint8Array): Promise<void>;
  /** The same as {@link put} for bytes that arrive; a source that fails or an abort leaves no object. */
  putStream(key: string, bytes: AsyncIterable<Uint8Array>, signal?: AbortSignal): Promise<void>;
  /**
   * Writes an object whole, unless one is there.
   *
   * Where the answer to a first attempt was lost, the object's bytes tell whose it is. So writers that compete
   * for a key should write bytes of their own. A thrown failure leaves open whether the object was written.
   *
   * @param after what has to be stored before the object gets its name; its failure is that of the write.
   *   Default: nothing
   * @returns false if one was there; it is untouched
   */
  putIfAbsent(key: string, bytes: Uint8Array, after?: Promise<unknown>): Promise<boolean>;
  /** @returns false if there was none; a store that does not tell says true */
  delete(key: string): Promise<boolean>;
  /**
   * Gives an object another key, in place of what is there; its bytes do not come here. It survives a loss of power
   * then, whoever wrote it.
   */
  move(from: string, to: string): Promise<void>;
  /**
   * Deletes what is in a directory when the call begins; nothing there is fine. After a loss of power some of it may
   * be there again, which has to be harmless.
   *
   * @param last the name of an object in it that is there as long as any other, also after a loss of power
   */
  deleteDirectory(directory: string, last?: string): Promise<void>;
  /** What only file systems can do. Default: none of it. */
  readonly files?: FileFeatures;
}

/** What a file system says of a directory; the times have the resolution of the file system. */
export interface DirectoryStamp {
  /** Tells it from another directory in its place. */
  readonly identity: bigint;
  /** When its entries changed, in nanoseconds since 1970; can be set by anyone. */
  readonly modifiedNs: bigint;
  /** When anything of it changed, in nanoseconds since 1970; cannot be set. */
  readonly changedNs: bigint;
}

/** What file systems can do beyond an {@link ObjectStore}. */
export interface FileFeatures {
  /** Makes a directory with those above it; one that is there is fine. */
  makeDirectory(directory: string): Promise<void>;
  /** Gives a directory another name at once; false if something is there, or if there is no such directory. */
  moveDirectory(from: string, to: string): Promise<boolean>;
  /** Lets objects that others wrote into a directory, such as the engine, survive a loss of power with their names. */
  syncObjects(keys: readonly string[], directory: string): Promise<void>;
  /** Lets what others wrote into a directory, survive a loss of power; its own name excepted. */
  syncTree(directory: string): Promise<void>;
  /** Tells a directory from another one that took its place; undefined if there is none. */
  identityOf(directory: string): Promise<string | undefined>;
  /** What tells whether anything came into a directory or left it; asked at once. Undefined if there is none. */
  directoryStamp(directory: string): DirectoryStamp | undefined;
  /** What tells a file from another one with its name, and from itself written anew; asked at once. */
  fileStamp(key: string): string | undefined;
  /**
   * The files directly in a directory that have no name yet because their writer is at work on them, or has ended.
   * They are in no listing.
   */
  temporaries(directory: string): Promise<ObjectInfo[]>;
  /** Whether a symbolic link is on the way to a key. */
  leadsThroughLink(key: string): Promise<boolean>;
}

/** All names directly in a directory, in the order of the listing. */
export async function listNames(store: ObjectStore, directory: string): Promise<string[]> {
  const names: string[] = [];
  for await (const page of store.list(directory)) for (const entry of page) names.push(entry.name);
  return names;
}

/** The key of a name in a directory. */
export function keyIn(directory: string, name: string): string {
  return directory === "" ? name : `${directory}/${name}`;
}
