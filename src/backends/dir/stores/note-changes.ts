import type { Changes } from "../../../runtime/threads/changes.ts";
import type { ObjectStore } from "../format/storage.ts";

/** The directory of a table's versions within a key; what is before it is the table's directory. */
const VERSIONS = "/_versions/";

/** Returns a store that notes each version that is written or deleted through it as a change of its table. */
export function noteChanges(store: ObjectStore, changes: Changes): ObjectStore {
  async function noted<T>(keys: readonly string[], work: Promise<T>): Promise<T> {
    try {
      return await work;
    } finally {
      // A failure leaves open whether something has changed.
      for (const key of keys) {
        const end = key.indexOf(VERSIONS);
        if (end > 0) changes.note(store.uriOf(key.slice(0, end)));
      }
    }
  }
  return {
    ...store,
    create: (key, bytes) => noted([key], store.create(key, bytes)),
    put: (key, bytes) => noted([key], store.put(key, bytes)),
    putStream: (key, bytes, signal) => noted([key], store.putStream(key, bytes, signal)),
    putIfAbsent: (key, ...rest) => noted([key], store.putIfAbsent(key, ...rest)),
    replace: (key, bytes, tag) => noted([key], store.replace(key, bytes, tag)),
    delete: (key) => noted([key], store.delete(key)),
    deleteTagged: (key, tag) => noted([key], store.deleteTagged(key, tag)),
    deleteAll: (keys) => noted(keys, store.deleteAll(keys)),
    copy: (from, to) => noted([to], store.copy(from, to)),
    move: (from, to) => noted([to], store.move(from, to)),
  };
}
