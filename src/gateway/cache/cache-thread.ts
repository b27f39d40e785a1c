// The program of the thread of the cache: a listener that the engine takes for an S3 service.
import { parentPort, workerData } from "node:worker_threads";
import { createBlockCache } from "../../backends/dir/cache/block-cache.ts";
import { answerControl } from "../../backends/dir/cache/control.ts";
import { openCounters } from "../../backends/dir/cache/counters.ts";
import { type DiskSlots, openDiskSlots } from "../../backends/dir/cache/disk-slots.ts";
import { startListener } from "../../backends/dir/cache/listener.ts";
import { createChecksums, createEncryption } from "../../backends/dir/cache/seal.ts";
import { createStoreRegistry } from "../../backends/dir/cache/store-registry.ts";
import type { CacheStart, FromCache, ToCache } from "./messages.ts";

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
