import type { OptionTable } from "../option-spec.ts";
import { parseSize, parseText } from "../parsers.ts";

/** Options of the cache on disk (docs/cache.md). */
export const CACHE_OPTIONS = {
  cacheDir: {
    flag: "cache-dir",
    value: "DIR",
    help: "Directory on a local disk for a cache of the tables in S3 buckets, for all workers together; created if it does not exist (docs/cache.md). Default: no cache on disk.",
    parse: parseText,
  },
  cacheBytes: {
    flag: "cache-size",
    value: "SIZE",
    help: "Maximum size of the files of the cache.",
    fallback: "10GiB",
    parse: parseSize,
    needs: { flag: "cache-dir" },
  },
  cacheMemoryBytes: {
    flag: "cache-memory",
    value: "SIZE",
    help: "Memory for the blocks of the cache that are read most.",
    fallback: "128MiB",
    parse: parseSize,
    needs: { flag: "cache-dir" },
  },
  cacheKeyFile: {
    flag: "cache-key-file",
    value: "FILE",
    help: "File with a secret of at least 32 bytes with which the cache encrypts its files (AES-256-GCM). Default: they are not encrypted.",
    parse: parseText,
    needs: { flag: "cache-dir" },
  },
} as const satisfies OptionTable;
