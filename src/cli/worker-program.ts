import { extname } from "node:path";

/** The program of a worker. Its place is known from here, as deep in the package as the files that the build makes. */
export const WORKER_PROGRAM = new URL(
  `../cli/workers/worker-main${extname(import.meta.filename)}`,
  import.meta.url,
);
