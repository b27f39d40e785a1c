import { assert, test } from "vitest";
import { createLocalStore } from "../format/local/local-store.ts";
import { defaultCacheSizes } from "./engine.ts";

const MIB = 1024 * 1024;

test("caches are small on a disk, whose files the operating system keeps in memory", () => {
  assert.deepEqual(defaultCacheSizes(createLocalStore()), {
    indexCacheBytes: 32 * MIB,
    metadataCacheBytes: 16 * MIB,
  });
});

test("caches of a bucket are larger, and the workers of a process divide them", () => {
  assert.deepEqual(defaultCacheSizes({}, 4), { indexCacheBytes: 64 * MIB, metadataCacheBytes: 32 * MIB });
});
