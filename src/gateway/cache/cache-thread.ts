import { parentPort, workerData } from "node:worker_threads";
import { createBlockCache } from "../../backends/dir/cache/block-cache.ts";
import { answerControl } from "../../backends/dir/cache/control.ts";
import { openCounters } from "../../backends/dir/cache/counters.ts";
import { type DiskSlots, openDiskSlots } from "../../backends/dir/cache/disk-slots.ts";
import { startListener } from "../../backends/dir/cache/listener.ts";
import { createChecksums, createEncryption } from "../../backends/dir/cache/record.ts";
import { createStoreRegistry, type RegisteredStore } from "../../backends/dir/cache/upstream.ts";

// The program of the thread of the cache: a listener that the engine takes for an S3 service.

/** Size of a block, in bytes (docs/cache.md). */
const BLOCK_BYTES = 128 * 1024;

const start = workerData as CacheStart;
const { directory, maxBytes, memoryBytes, key, secret, port, stores } = start;
const parent = parentPort;
if (parent === null) throw new Error("the cache is a thread of the gateway");
const post = (message: FromCache) => parent.postMessage(message);

const seal = key === undefined ? createChecksums() : createEncryption(Buffer.from(key));
const counters = openCounters(start.counters);
const cache = createBlockCache({
  ...{ blockBytes: BLOCK_BYTES, memoryBytes, counters },
  onDiskError: ({ message }) => post({ type: "failed", what: "disk", message }),
});
let disk: DiskSlots | undefined;

async function attach(): Promise<void> {
  try {
    const opened = await openDiskSlots({ directory, maxBytes, blockBytes: BLOCK_BYTES, seal });
    await cache.attach(opened);
    disk = opened;
    post({ type: "attached", failure: undefined });
  } catch (error) {
    post({ type: "attached", failure: (error as Error).message });
  }
}

const registry = await createStoreRegistry({
  known: stores,
  onRegistered: (store) => post({ type: "registered", store }),
});
const listener = await startListener({
  ...{ cache, counters, port },
  // While an earlier thread's port was free, another program may have listened there and seen access key ids. A check of
  // signatures takes too long for each request of all other times.
  secret: port === 0 ? undefined : secret,
  upstreamOf: registry.upstreamOf,
  nameOf: (object) => seal.nameOf(object).toString("hex"),
  onError: ({ message }) => post({ type: "failed", what: "bucket", message }),
});

const control = answerControl(secret, { ...listener, register: registry.register });

async function close(): Promise<void> {
  control.close();
  await listener.close();
  registry.close();
  await cache.settled();
  await disk?.close();
  post({ type: "closed" });
  parent?.close();
}

parent.on("message", (message: ToCache) => {
  if (message.type === "attach") void attach();
  else void close();
});
post({ type: "listening", port: listener.port });

/** Data with which the thread of the cache begins. */
export interface CacheStart {
  readonly directory: string;
  /** Size of its files, in bytes. */
  readonly maxBytes: number;
  readonly memoryBytes: number;
  /** Secret with which its files are encrypted. */
  readonly key: Uint8Array | undefined;
  /** Secret of the process, which names the channels to its other threads. */
  readonly secret: string;
  /** 0 for a free port. */
  readonly port: number;
  readonly counters: SharedArrayBuffer;
  /** Stores that an earlier thread had registered. */
  readonly stores: readonly RegisteredStore[];
}

/** Messages of the main thread. */
export type ToCache =
  /** The directory is free, so that its files may be used. */
  { readonly type: "attach" } | { readonly type: "close" };

/** Messages of the thread of the cache. */
export type FromCache =
  | { readonly type: "listening"; readonly port: number }
  | { readonly type: "registered"; readonly store: RegisteredStore }
  /** The files are in use; or cannot be, for a reason. */
  | { readonly type: "attached"; readonly failure: string | undefined }
  | { readonly type: "failed"; readonly what: "disk" | "bucket"; readonly message: string }
  | { readonly type: "closed" };
