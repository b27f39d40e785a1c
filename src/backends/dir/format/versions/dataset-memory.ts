import { putNewest } from "../../../../runtime/put-newest.ts";
import type { ObjectStore } from "../storage.ts";

/** Default number of datasets of a store that are remembered. */
const MAX_DATASETS = 10_000;

/** Facts that this process remembers about the datasets of a store, by their directories of versions. */
export interface DatasetMemory<T> {
  get(store: ObjectStore, directory: string): T | undefined;
  /** Remembers a value; evicts the values that were set the longest ago if there are too many. */
  set(store: ObjectStore, directory: string, value: T): void;
  forget(store: ObjectStore, directory: string): void;
}

/**
 * Creates an empty memory.
 *
 * @param max Maximum number of datasets of a store that are remembered. Default: 10,000.
 */
export function createDatasetMemory<T>(max = MAX_DATASETS): DatasetMemory<T> {
  const stores = new WeakMap<ObjectStore, Map<string, T>>();
  return {
    get: (store, directory) => stores.get(store)?.get(directory),
    set(store, directory, value) {
      const values = stores.get(store) ?? new Map<string, T>();
      stores.set(store, values);
      putNewest(values, directory, value, max);
    },
    forget: (store, directory) => void stores.get(store)?.delete(directory),
  };
}
