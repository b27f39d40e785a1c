import { parseJsonFile } from "../../format/files/damaged-file.ts";
import { keyIn, type ObjectStore } from "../../format/storage.ts";
import { keyOfName } from "./placed-files.ts";

/** A column that an owner has added with a function. */
export interface BoundColumn {
  /** Of the table, relative to the base. */
  readonly location: string;
  /** The name of the column. */
  readonly column: string;
  /** Value of its metadata. */
  readonly binding: string;
}

/**
 * The functions of columns, as owners have chosen them, outside of the tables. The metadata of a column says the same, and can be changed by
 * everybody who may write the table.
 */
export interface ColumnBindings {
  /** Records the function of a column, in place of an earlier column of the name. */
  put(column: BoundColumn): Promise<void>;
  /** Returns what an owner has chosen for a column of a table. */
  get(location: string, column: string): Promise<string | undefined>;
}

/** Opens the functions of columns in a directory, given as an object key. It writes nothing before the first one. */
export function createColumnBindings(store: ObjectStore, directory: string): ColumnBindings {
  const keyOf = (location: string, column: string) => keyIn(directory, keyOfName([location, column]));
  return {
    async put(bound) {
      await store.put(keyOf(bound.location, bound.column), Buffer.from(JSON.stringify(bound)));
    },
    async get(location, column) {
      const key = keyOf(location, column);
      const bytes = await store.get(key);
      return bytes && (parseJsonFile(key, bytes) as unknown as BoundColumn).binding;
    },
  };
}
