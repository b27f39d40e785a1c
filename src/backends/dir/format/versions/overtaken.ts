import type { DatasetRef } from "../dataset.ts";
import { latestVersion } from "./version-files.ts";

/** Time in which no version is made and pruned, in milliseconds: pruning leaves those that are several times as old. */
const SURE_WITHIN_MS = 5_000;

/**
 * Whether others may have made and pruned a version of a number by now. Its name is free again then, and a version under it
 * would not be part of the history.
 *
 * @param sinceLook the milliseconds since the number was known to be the next
 */
export async function isOvertaken(
  dataset: DatasetRef,
  version: bigint,
  sinceLook: () => number,
): Promise<boolean> {
  if (sinceLook() < SURE_WITHIN_MS) return false;
  const latest = await latestVersion(dataset);
  return latest !== undefined && latest.version >= version;
}
