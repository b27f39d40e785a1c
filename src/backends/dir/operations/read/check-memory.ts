import { LanceError } from "../../../../namespace/errors.ts";

/**
 * Refuses work for which the engine would hold more than half of the free memory. It has no bound of its own, and ends the process when the
 * memory does not suffice.
 *
 * @param advice what the client can do instead
 * @throws LanceError InvalidInput
 */
export function checkMemory(bytes: number, advice: string): void {
  if (bytes <= process.availableMemory() / 2) return;
  throw new LanceError(
    "InvalidInput",
    `the engine would gather about ${Math.ceil(bytes / 2 ** 20)} MiB before the first row, which is more than half of the free memory; ${advice}`,
  );
}
