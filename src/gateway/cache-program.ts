import { extname } from "node:path";

/** The program of the cache's thread. Its place is known from here, as deep in the package as the files that the build makes. */
export const CACHE_PROGRAM = new URL(
  `../gateway/cache/cache-thread${extname(import.meta.filename)}`,
  import.meta.url,
);
