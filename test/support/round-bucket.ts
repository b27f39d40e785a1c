import { setImmediate as turn } from "node:timers/promises";
import { createLocalStore } from "../../src/backends/dir/format/local/local-store.ts";
import type { Bucket } from "../../src/backends/dir/stores/bucket.ts";
import type { OpenedStore } from "../../src/backends/dir/stores/open-store.ts";
import { createRemoteStore } from "../../src/backends/dir/stores/remote-store.ts";
import { createDiskBucket } from "./disk-bucket.ts";

/** Number of turns of the event loop without a new request after which a round ends. */
const QUIET_TURNS = 20;

/** Requests to a bucket since the last look. */
export interface Rounds {
  /** Number of times that the caller had to wait for answers: requests that it sent together count once. */
  readonly rounds: number;
  /** The requests in their order, such as `HEAD __manifest/_versions`, with the directories of tables as `*`. */
  readonly requests: readonly string[];
}

/** A bucket that answers no request before the caller has sent all that it can send without an answer. */
export interface RoundBucket {
  readonly storage: OpenedStore;
  /** Returns the requests since the last call. */
  take(): Rounds;
}

/**
 * Opens a bucket whose objects are files below a directory, and which lists them in order as S3 does. The engine's own
 * requests go to the files and are not counted.
 */
export function createRoundBucket(root: string): RoundBucket {
  const disk = createLocalStore();
  const plain = createDiskBucket(disk);
  let [rounds, requests] = [0, [] as string[]];
  let waiting: (() => void)[] = [];
  let isWatched = false;

  async function endRounds(): Promise<void> {
    isWatched = true;
    for (let quiet = 0, seen = 0; quiet < QUIET_TURNS; quiet += 1) {
      await turn();
      if (waiting.length > seen) [quiet, seen] = [0, waiting.length];
    }
    isWatched = false;
    rounds += 1;
    const answered = waiting;
    waiting = [];
    for (const answer of answered) answer();
  }
  async function answer<T>(kind: string, key: string, work: () => Promise<T>): Promise<T> {
    const path = key.slice(disk.keyOf(root).length + 1).replace(/^data\//, "");
    const directory = path.slice(0, Math.max(0, path.lastIndexOf("/")));
    requests.push(`${kind} ${directory.replace(/^[0-9a-v]{14}_[^/]*/, "*")}`);
    const turnOf = Promise.withResolvers<void>();
    waiting.push(turnOf.resolve);
    if (!isWatched) void endRounds();
    await turnOf.promise;
    return work();
  }
  const bucket: Bucket = {
    ...plain,
    listsInOrder: true,
    get: (key) => answer("GET", key, () => plain.get(key)),
    getPart: (key, range) => answer("GET", key, () => plain.getPart(key, range)),
    head: (key) => answer("HEAD", key, () => plain.head(key)),
    put: (key, bytes) => answer("PUT", key, () => plain.put(key, bytes)),
    create: (key, bytes, attempts) => answer("PUT if absent", key, () => plain.create(key, bytes, attempts)),
    copy: (from, to) => answer("COPY", to, () => plain.copy(from, to)),
    delete: (keys) => answer("DELETE", keys[0] ?? "", () => plain.delete(keys)),
    page: (query) =>
      answer("LIST", query.prefix, async () => {
        const page = await plain.page(query);
        return { ...page, objects: page.objects.toSorted((a, b) => (a.key < b.key ? -1 : 1)) };
      }),
  };
  const store = { ...createRemoteStore(bucket), uriOf: disk.uriOf, keyOf: disk.keyOf };
  return {
    storage: { store, root: disk.keyOf(root), engineOptions: {} },
    take() {
      const taken = { rounds, requests };
      [rounds, requests] = [0, []];
      return taken;
    },
  };
}
