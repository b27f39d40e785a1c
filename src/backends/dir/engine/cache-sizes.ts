import type { ObjectStore } from "../format/storage.ts";

const MIB = 1024 * 1024;

/** Sizes of the engine's caches, in bytes. */
export interface CacheSizes {
  /** Of parts of indices. */
  readonly indexCacheBytes: number;
  /** Of the metadata of files. */
  readonly metadataCacheBytes: number;
}

/**
 * Returns the default sizes of the engine's caches for a worker, in equal parts of what the process may have.
 *
 * On a disk they are small, because the operating system keeps the files in memory anyway; from a bucket, each part
 * that is read again costs a round trip (docs/adr/0028).
 *
 * @param workers number of workers. Default: 1
 */
export function defaultCacheSizes(store: Pick<ObjectStore, "files">, workers = 1): CacheSizes {
  const [index, metadata] = store.files === undefined ? [256, 128] : [32, 16];
  return {
    indexCacheBytes: Math.ceil((index * MIB) / workers),
    metadataCacheBytes: Math.ceil((metadata * MIB) / workers),
  };
}
