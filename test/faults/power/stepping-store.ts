import { createLocalStore } from "../../../src/backends/dir/format/local/local-store.ts";
import type { Bucket, Outcome } from "../../../src/backends/dir/stores/bucket.ts";
import type { OpenedStore } from "../../../src/backends/dir/stores/open-store.ts";
import { createRemoteStore } from "../../../src/backends/dir/stores/remote-store.ts";
import { LanceError } from "../../../src/namespace/errors.ts";
import { createDiskBucket } from "../../support/disk-bucket.ts";

/** A fault in one of the requests that change a bucket. */
export interface StepFault {
  /** The index of the request, from 0. */
  readonly at: number;
  /** Whether the bucket carries the request out and loses only its answer. */
  readonly isDone: boolean;
  /**
   * Whether the process ends with the request: every later request fails, reads too. Otherwise the next requests
   * succeed.
   */
  readonly lasts: boolean;
}

/** A bucket whose changes are durable steps, with faults at the steps. */
export interface SteppingStore {
  readonly storage: OpenedStore;
  /** Begins to count steps. */
  arm(fault?: StepFault): void;
  /** Returns the number of steps since then. */
  steps(): number;
}

/** Opens a bucket whose objects are files below a directory. Nothing is synced, but the order of changes is kept. */
export function createSteppingStore(root: string): SteppingStore {
  const disk = createLocalStore();
  const plain = createDiskBucket(disk);
  let armed: StepFault | undefined;
  let [count, hasEnded] = [0, false];
  const failure = () => new LanceError("ServiceUnavailable", "the storage does not answer");

  /** @throws LanceError ServiceUnavailable when the process has ended */
  function goOn(): void {
    if (hasEnded) throw failure();
  }
  async function step<T>(change: () => Promise<T>): Promise<T> {
    goOn();
    if (count++ !== armed?.at) return change();
    hasEnded = armed.lasts;
    if (armed.isDone) await change();
    throw failure();
  }
  /** Makes an attempt under a condition. A process that has ended does not ask again. */
  function attempt(change: () => Promise<Outcome>): Promise<Outcome> {
    return step(change).catch((unclear: unknown) => {
      if (hasEnded) throw unclear;
      return { unclear };
    });
  }
  const bucket: Bucket = {
    ...plain,
    async get(key) {
      goOn();
      return plain.get(key);
    },
    async getTagged(key) {
      goOn();
      return plain.getTagged(key);
    },
    async getStream(key) {
      goOn();
      return plain.getStream(key);
    },
    async getPart(key, range) {
      goOn();
      return plain.getPart(key, range);
    },
    async head(key) {
      goOn();
      return plain.head(key);
    },
    async page(query) {
      goOn();
      return plain.page(query);
    },
    put: (key, bytes) => step(() => plain.put(key, bytes)),
    putStream: (key, bytes) => step(() => plain.putStream(key, bytes)),
    create: (key, bytes, attempts) => attempt(() => plain.create(key, bytes, attempts)),
    replace: (key, bytes, tag, attempts) => attempt(() => plain.replace(key, bytes, tag, attempts)),
    deleteTagged: (key, tag, attempts) => attempt(() => plain.deleteTagged(key, tag, attempts)),
    copy: (from, to) => step(() => plain.copy(from, to)),
    async delete(keys) {
      for (const key of keys) await step(() => plain.delete([key]));
    },
  };
  const store = { ...createRemoteStore(bucket), uriOf: disk.uriOf, keyOf: disk.keyOf };
  return {
    storage: { store, root: disk.keyOf(root), engineOptions: {} },
    arm(fault) {
      [armed, count, hasEnded] = [fault, 0, false];
    },
    steps: () => count,
  };
}
