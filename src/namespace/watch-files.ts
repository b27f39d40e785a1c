import { type StatsListener, unwatchFile, watchFile } from "node:fs";

/** Interval between looks at a file, in milliseconds. */
const LOOK_MS = 1_000;

/**
 * Calls back when one of some files has changed, once at a time. It looks at the files instead of watching them, because editors
 * and Kubernetes replace files by others, which a watch of an inode misses.
 *
 * @param onChange must not reject.
 * @param intervalMs Default: 1 s.
 * @returns a function that ends the looks.
 */
export function watchFiles(
  paths: readonly string[],
  onChange: () => Promise<void>,
  intervalMs = LOOK_MS,
): () => void {
  let running = Promise.resolve();
  const listener: StatsListener = () => {
    running = running.then(onChange);
  };
  for (const path of paths) watchFile(path, { persistent: false, interval: intervalMs }, listener);
  return () => {
    for (const path of paths) unwatchFile(path, listener);
  };
}
