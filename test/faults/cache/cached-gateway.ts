import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { createBlockCache } from "../../../src/backends/dir/cache/block-cache.ts";
import { cacheableKindOf } from "../../../src/backends/dir/cache/cacheable.ts";
import { openCounters } from "../../../src/backends/dir/cache/counters.ts";
import { openDiskSlots } from "../../../src/backends/dir/cache/disk-slots.ts";
import { createReadThrough } from "../../../src/backends/dir/cache/read-through.ts";
import type { Seal } from "../../../src/backends/dir/cache/record.ts";
import { parseRange } from "../../../src/backends/dir/cache/s3-request.ts";
import { noteWrites } from "../../../src/backends/dir/cache/written-objects.ts";
import type { Random } from "../../support/random.ts";
import { BLOCK_BYTES } from "./damage-files.ts";
import type { FakeBucket, StoredBytes } from "./fake-bucket.ts";

export const MEMORY_BYTES = 4 * BLOCK_BYTES;

/** A gateway's cache, as far as bytes go through it. */
export interface CachedGateway {
  /** Returns what the engine would get; undefined if the cache leaves the answer to the bucket. */
  read(key: string, range: string | undefined): Promise<Buffer | undefined>;
  /** Writes an object as the engine does: through the cache. */
  write(key: string, object: StoredBytes): Promise<void>;
  /** Bytes of blocks in memory. */
  readonly memoryBytes: number;
  /** Ends without the writes that have not begun; one that has begun may be torn. */
  kill(): Promise<void>;
  stop(): Promise<void>;
}

/** Options of {@link openCachedGateway}. */
export interface CachedGatewayOptions {
  readonly directory: string;
  readonly bucket: FakeBucket;
  readonly seal: Seal;
  readonly maxBytes: number;
  readonly random: Random;
  /** Whether the disk refuses to be written. */
  readonly isFull: () => boolean;
}

/** Opens the cache of a gateway, with a disk that loses and tears writes. */
export async function openCachedGateway(options: CachedGatewayOptions): Promise<CachedGateway> {
  const { directory, bucket, seal, maxBytes, random, isFull } = options;
  const counters = openCounters();
  let clock = 0;
  const cache = createBlockCache({
    ...{ blockBytes: BLOCK_BYTES, memoryBytes: MEMORY_BYTES, counters },
    // A full disk is tried again after some steps.
    now: () => (clock += 500),
    onDiskError() {},
  });
  const disk = await openDiskSlots({ directory, maxBytes, blockBytes: BLOCK_BYTES, seal });
  let isKilled = false;
  await cache.attach({
    ...disk,
    async write(slot, block, bytes) {
      if (isKilled) throw new Error("the process has ended");
      if (isFull()) {
        // The system may have taken a part.
        if (random.below(2) === 0) await disk.write(slot, block, bytes.subarray(0, bytes.length >>> 1));
        throw Object.assign(new Error("no space left on device"), { code: "ENOSPC" });
      }
      return disk.write(slot, block, bytes);
    },
    async erase(slot) {
      if (isKilled) throw new Error("the process has ended");
      return disk.erase(slot);
    },
    async read(...place) {
      if (random.below(100) === 0) throw Object.assign(new Error("bad sector"), { code: "EIO" });
      return disk.read(...place);
    },
  });
  const readThrough = createReadThrough(cache, counters);
  const nameOf = async (key: string) => seal.nameOf(`http://bucket.test lance ${key}`).toString("hex");
  async function stop(): Promise<void> {
    await cache.settled();
    await disk.close();
  }
  return {
    async read(key, range) {
      const kind = cacheableKindOf(key);
      if (kind === undefined) throw new Error(`${key} is not cacheable`);
      const asked = range === undefined ? undefined : parseRange(range);
      const { upstream } = bucket;
      const name = await nameOf(key);
      const found = await readThrough({ upstream, bucket: "lance", key, kind, name, range: asked });
      return found && Buffer.concat(await Array.fromAsync(found.bytes));
    },
    async write(key, object) {
      const { bytes, tag } = object;
      const headers = { "content-length": String(bytes.length) };
      const incoming = Object.assign(Readable.from([bytes]), { headers }) as unknown as IncomingMessage;
      const request = { method: "PUT", bucket: "lance", key, headers: {} };
      const written = noteWrites(cache, request, incoming, nameOf);
      await written.begin();
      if (written.body !== undefined) await Array.fromAsync(written.body);
      bucket.objects.set(key, object);
      await written.end({ status: 200, headers: { etag: tag }, body: Readable.from([]) });
    },
    get memoryBytes() {
      return counters.get("memoryBytes");
    },
    async kill() {
      isKilled = true;
      await stop();
    },
    stop,
  };
}
