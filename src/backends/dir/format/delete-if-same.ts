import type { ObjectStore } from "./storage.ts";

/** Deletes an object unless it has other bytes than these; a deletion that is carried out late does not delete such a one either. */
export async function deleteIfSame(store: ObjectStore, key: string, bytes: Uint8Array): Promise<void> {
  const found = await store.getTagged(key);
  if (found !== undefined && Buffer.compare(found.bytes, bytes) === 0)
    await store.deleteTagged(key, found.tag);
}
