import type { Bucket } from "./bucket.ts";

/** A segment of dots, which the library of Azure folds away as part of a URL. */
const DOT_SEGMENT = /(?:^|\/)\.{1,2}(?:\/|$)/;

/**
 * Keeps the keys of a bucket from leading elsewhere: clients write manifests, whose paths become parts of keys.
 *
 * The operations reject keys with a segment of dots with an Error.
 */
export function withCheckedKeys(bucket: Bucket): Bucket {
  return {
    ...bucket,
    get: async (key, signal) => bucket.get(checked(key), signal),
    getTagged: async (key, signal) => bucket.getTagged(checked(key), signal),
    getStream: async (key) => bucket.getStream(checked(key)),
    getPart: async (key, range, signal) => bucket.getPart(checked(key), range, signal),
    head: async (key, signal) => bucket.head(checked(key), signal),
    put: async (key, bytes, signal) => bucket.put(checked(key), bytes, signal),
    putStream: async (key, bytes, signal) => bucket.putStream(checked(key), bytes, signal),
    create: async (key, bytes, attempts) => bucket.create(checked(key), bytes, attempts),
    replace: async (key, bytes, tag, attempts) => bucket.replace(checked(key), bytes, tag, attempts),
    copy: async (from, to) => bucket.copy(checked(from), checked(to)),
    delete: async (keys) => bucket.delete(keys.map(checked)),
    deleteTagged: async (key, tag, attempts) => bucket.deleteTagged(checked(key), tag, attempts),
  };
}

function checked(key: string): string {
  if (DOT_SEGMENT.test(key)) throw new Error(`${JSON.stringify(key)} is no object key`);
  return key;
}
