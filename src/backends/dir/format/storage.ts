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
}

/** The end of an object. */
export interface ObjectTail {
  /** The whole object's size, in bytes. */
  readonly size: number;
  readonly bytes: Uint8Array;
}

/**
 * The few operations on storage that the table format needs: a local disk has them, and so has an object
 * store with conditional writes.
 *
 * Keys are `/`-separated paths without a leading slash. Reads see every write that finished before they
 * began. A missing object is `undefined` or an empty listing; all other failures are thrown as the store
 * reports them.
 */
export interface ObjectStore {
  /**
   * Whether listings come in ascending order of the names. Where they do not, the format's writers keep
   * `latest_version_hint.json` up to date.
   */
  readonly listsInOrder: boolean;
  get(key: string): Promise<Uint8Array | undefined>;
  /** The last `length` bytes, or all if there are fewer. */
  getTail(key: string, length: number): Promise<ObjectTail | undefined>;
  /** The bytes from `start` to before `end`, or fewer if the object ends earlier. */
  getRange(key: string, start: number, end: number): Promise<Uint8Array | undefined>;
  head(key: string): Promise<ObjectInfo | undefined>;
  /** The objects directly in a directory, in pages; a store may list sub-directories too. */
  list(directory: string): AsyncIterable<readonly ObjectEntry[]>;
  /** Writes an object whole, in place of one that is there. */
  put(key: string, bytes: Uint8Array): Promise<void>;
  /**
   * Writes an object whole, unless one is there.
   *
   * @returns false if one was there; it is untouched
   */
  putIfAbsent(key: string, bytes: Uint8Array): Promise<boolean>;
  /** @returns false if there was none; a store that does not tell says true */
  delete(key: string): Promise<boolean>;
}

/** All names directly in a directory, in the order of the listing. */
export async function listNames(store: ObjectStore, directory: string): Promise<string[]> {
  const names: string[] = [];
  for await (const page of store.list(directory)) for (const entry of page) names.push(entry.name);
  return names;
}
