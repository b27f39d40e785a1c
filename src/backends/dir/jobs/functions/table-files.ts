import { forEachOf } from "../../concurrency/for-each.ts";
import { damagedFile, parseJsonFile } from "../../format/files/damaged-file.ts";
import { keyIn, listNames, type ObjectStore } from "../../format/storage.ts";
import { keyOfName, type OnDamaged, READS, unlessDamaged } from "./placed-files.ts";

/** A record about a table. */
export interface OfTable {
  /** Of the table, relative to the base. */
  readonly location: string;
}

/** Records about tables, by their names in a folder for each table. */
export interface TableFiles<T extends OfTable> {
  put(name: string, record: T): Promise<void>;
  get(location: string, name: string): Promise<T | undefined>;
  remove(location: string, name: string): Promise<void>;
  removeAll(location: string): Promise<void>;
  /** Returns the records of a table, in the order of their names. */
  list(location: string): Promise<readonly T[]>;
  /** Finds the folders of tables that are gone. A folder whose first record is damaged is passed on and stays. */
  findGone(isGone: (location: string) => Promise<boolean>, onDamaged: OnDamaged): AsyncGenerator<string>;
}

/** Opens the records in a directory, given as an object key. It writes nothing. */
export function createTableFiles<T extends OfTable>(store: ObjectStore, directory: string): TableFiles<T> {
  const folderOf = (location: string) => keyIn(directory, keyOfName([location]));
  async function read(key: string): Promise<T | undefined> {
    const bytes = await store.get(key);
    if (bytes === undefined) return undefined;
    const record = parseJsonFile(key, bytes);
    if (typeof record["location"] === "string") return record as unknown as T;
    throw damagedFile(key, "names no table");
  }
  return {
    async put(name, record) {
      await store.put(keyIn(folderOf(record.location), name), Buffer.from(JSON.stringify(record)));
    },
    get: (location, name) => read(keyIn(folderOf(location), name)),
    async remove(location, name) {
      await store.delete(keyIn(folderOf(location), name));
    },
    async removeAll(location) {
      await store.deleteDirectory(folderOf(location));
    },
    async list(location) {
      const folder = folderOf(location);
      const names = await listNames(store, folder);
      const found: (T | undefined)[] = [];
      await forEachOf(names.entries(), READS, async ([place, name]) => {
        found[place] = await read(keyIn(folder, name));
      });
      return found.filter((record) => record !== undefined);
    },
    async *findGone(isGone, onDamaged) {
      for (const name of await listNames(store, directory)) {
        const folder = keyIn(directory, name);
        const [first] = await listNames(store, folder);
        if (first === undefined) continue;
        const key = keyIn(folder, first);
        const record = await unlessDamaged(key, () => read(key), onDamaged);
        if (record !== undefined && (await isGone(record.location))) yield folder;
      }
    },
  };
}
