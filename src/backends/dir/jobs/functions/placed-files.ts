import { createHash } from "node:crypto";
import { isLanceError } from "../../../../namespace/errors.ts";
import type { Identifier } from "../../../../namespace/identifier.ts";
import { forEachOf } from "../../concurrency/for-each.ts";
import { damagedFile, parseJsonFile } from "../../format/files/damaged-file.ts";
import { keyIn, listNames, type ObjectStore } from "../../format/storage.ts";

/** Number of records that are read at a time. */
export const READS = 16;

/** Where a function or a secret is: its name, and the home of its namespace. */
export interface Placed {
  /** From the root downwards, its own name last. */
  readonly id: Identifier;
  /** A namespace that was dropped and created again is another home. */
  readonly home: string;
}

/**
 * The namespaces of the catalog, for functions and secrets. A namespace that was dropped and created again has another home, so that it
 * has nothing of the former one, whatever a crash has left of it.
 */
export interface Homes {
  /** Returns the homes of namespaces; undefined for one that does not exist or never had a function. */
  read(): Promise<(namespace: Identifier) => string | undefined>;
  /** Returns those of some records whose namespace is gone in the newest state. */
  gone<T extends Placed>(places: readonly T[]): Promise<T[]>;
  /** Returns the home of a namespace, and gives it one. @throws LanceError NamespaceNotFound */
  enter(namespace: Identifier): Promise<string>;
  /** Records that a home has got something, before that is acknowledged. @throws LanceError NamespaceNotFound if it has been dropped since */
  confirm(namespace: Identifier, home: string): Promise<void>;
}

/** Is called with a file that is damaged and its error; the work goes on without the file. */
export type OnDamaged = (key: string, error: unknown) => void;

/** Reads a file. @returns undefined also for a damaged one that is passed on. @throws LanceError DataLoss if damaged ones are not passed on */
export async function unlessDamaged<T>(
  key: string,
  read: () => Promise<T | undefined>,
  onDamaged?: OnDamaged,
): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (onDamaged === undefined || !isLanceError(error, "DataLoss")) throw error;
    onDamaged(key, error);
    return undefined;
  }
}

/** A file of a namespace that is gone. */
export interface GoneFile {
  readonly key: string;
  remove(): Promise<boolean>;
}

/** Records in a directory, one for each name of a namespace. */
export interface PlacedFiles<T extends Placed> {
  /** Returns the key of a place. */
  keyOf(place: Placed): string;
  /** Returns where a name is; undefined if its namespace never had a record. */
  placeOf(id: Identifier): Promise<Placed | undefined>;
  read(id: Identifier): Promise<T | undefined>;
  parse(key: string, bytes: Uint8Array): T;
  /** Returns the records of the namespaces that exist. */
  list(): Promise<readonly T[]>;
  /** Returns all records, also those of namespaces that are gone. @throws LanceError DataLoss if damaged ones are not passed on */
  all(onDamaged?: OnDamaged): Promise<readonly T[]>;
}

/** Opens the records in a directory, given as an object key. It writes nothing. */
export function createPlacedFiles<T extends Placed>(
  store: ObjectStore,
  directory: string,
  homes: Homes,
): PlacedFiles<T> {
  const files: PlacedFiles<T> = {
    keyOf: ({ id, home }) => keyIn(directory, keyOfName([home, ...id])),
    async placeOf(id) {
      const home = (await homes.read())(id.slice(0, -1));
      return home === undefined ? undefined : { id, home };
    },
    async read(id) {
      const place = await files.placeOf(id);
      const bytes = place && (await store.get(files.keyOf(place)));
      return place && bytes && files.parse(files.keyOf(place), bytes);
    },
    parse(key, bytes) {
      const record = parseJsonFile(key, bytes);
      if (Array.isArray(record["id"]) && typeof record["home"] === "string") return record as unknown as T;
      throw damagedFile(key, "names no place");
    },
    async list() {
      const found = await files.all();
      const homeOf = await homes.read();
      return found.filter(({ id, home }) => homeOf(id.slice(0, -1)) === home);
    },
    async all(onDamaged) {
      const found: T[] = [];
      await forEachOf(await listNames(store, directory), READS, async (name) => {
        const key = keyIn(directory, name);
        const read = async () => {
          const bytes = await store.get(key);
          return bytes && files.parse(key, bytes);
        };
        const record = await unlessDamaged(key, read, onDamaged);
        if (record !== undefined) found.push(record);
      });
      return found;
    },
  };
  return files;
}

/** Returns the name of the object of a name in the catalog, which any storage takes. */
export function keyOfName(id: Identifier): string {
  return createHash("sha256").update(JSON.stringify(id)).digest("hex");
}
