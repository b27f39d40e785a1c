import { manifestName, versionsDirectory } from "../../dir/format/dataset.ts";
import { keyIn, type ObjectStore } from "../../dir/format/storage.ts";
import type { Job } from "../../dir/jobs/job.ts";

/** Longest time by which a storage's clock may seem to go back, because it dates objects by whole seconds, in milliseconds. */
const SLACK_MS = 2_000;

/**
 * Returns when the first version of the table at a location was written, by the storage's clock; 0 if it is gone or cannot be read. It tells a
 * table from a former one that was dropped and had the same name and place.
 */
export async function beginningOf(store: ObjectStore, location: string): Promise<number> {
  for (const scheme of ["V2", "V1"] as const) {
    const key = keyIn(versionsDirectory({ root: location }), manifestName(1n, scheme));
    const info = await store.head(key).catch(() => undefined);
    if (info !== undefined) return info.modifiedMillis;
  }
  return 0;
}

/** Whether a job may be one of the table that began at a time. */
export function isSince(beginning: number, { createdAt }: Pick<Job, "createdAt">): boolean {
  return createdAt > beginning - SLACK_MS;
}
