import type { ObjectStore } from "../../src/backends/dir/format/storage.ts";
import type { Bucket } from "../../src/backends/dir/stores/bucket.ts";
import { createRemoteStore } from "../../src/backends/dir/stores/remote-store.ts";
import { createDiskBucket } from "./disk-bucket.ts";

/** A bucket that carries requests out late. */
export interface LateBucket {
  readonly store: ObjectStore;
  /** Gives no answer to the first attempt of each change during some work; the second attempts succeed. */
  hangDuring<T>(work: () => Promise<T>): Promise<T>;
  /** Carries out what hung. */
  land(): Promise<void>;
}

/** Creates a bucket on a store. Attempts that the services' libraries repeat themselves hang unseen, as they do there. */
export function createLateBucket(under: ObjectStore): LateBucket {
  const plain = createDiskBucket(under);
  let hung: (() => Promise<unknown>)[] = [];
  let isHanging = false;
  /** Bytes for which there was an attempt. Some first attempts get the time of a later one. */
  const tried = new WeakSet<Uint8Array>();

  async function repeated<T>(change: () => Promise<T>): Promise<T> {
    if (isHanging) hung.push(change);
    return change();
  }
  async function attempted<T>(change: () => Promise<T>, attempts: number) {
    if (!isHanging || attempts > 0) return change();
    hung.push(change);
    return { unclear: new Error("no answer") };
  }
  const bucket: Bucket = {
    ...plain,
    put: (key, bytes) => repeated(() => plain.put(key, bytes)),
    delete: (keys) => repeated(() => plain.delete(keys)),
    create(key, bytes, attempts) {
      const earlier = tried.has(bytes) ? attempts : 0;
      tried.add(bytes);
      return attempted(() => plain.create(key, bytes, attempts), earlier);
    },
    replace: (key, bytes, tag, attempts) =>
      attempted(() => plain.replace(key, bytes, tag, attempts), attempts),
    deleteTagged: (key, tag, attempts) => attempted(() => plain.deleteTagged(key, tag, attempts), attempts),
  };
  return {
    store: createRemoteStore(bucket),
    async hangDuring(work) {
      isHanging = true;
      return work().finally(() => {
        isHanging = false;
      });
    },
    async land() {
      const late = hung;
      hung = [];
      for (const change of late) await change();
    },
  };
}
