import { LanceError } from "../../../../namespace/errors.ts";
import type { DatasetRef, NamingScheme } from "../dataset.ts";
import { manifestFileOf, parseManifestFile } from "../files/manifest-file.ts";
import { noteDurable } from "./known-durable.ts";
import { syncFilesOf } from "./make-durable.ts";
import { publishVersion } from "./publish-version.ts";
import { latestVersion } from "./version-files.ts";
import { writeVersionHint } from "./version-hint.ts";

/** A manifest that has been checked and may become a version. */
export interface PreparedVersion {
  readonly dataset: DatasetRef;
  readonly version: bigint;
  readonly scheme: NamingScheme;
  /** Key of the published version. */
  readonly key: string;
  /** Key of the manifest that a client has staged; undefined if the manifest was built here. */
  readonly stagedKey: string | undefined;
  readonly bytes: Uint8Array;
  /** Whether an earlier attempt of this call has already published it. */
  readonly exists: boolean;
  /** Returns the milliseconds since its number was known to be the next. Default: 0. */
  readonly sinceLook?: (() => number) | undefined;
  /** Called when readers see the version. Default: nobody has to know. */
  readonly onPublished?: (() => void) | undefined;
}

/**
 * Publishes a prepared version, unless another writer was first. The staged file remains.
 *
 * @param onUnclear as for {@link publishVersion}
 * @throws LanceError ConcurrentModification, and the errors of {@link publishVersion}
 */
export async function publishPrepared(prepared: PreparedVersion, onUnclear?: () => void): Promise<void> {
  const { dataset, version, key, bytes, exists, sinceLook, onPublished } = prepared;
  // The writer that published the version earlier, or wrote its files, may not have synced them.
  const synced = syncFilesOf(dataset, manifestFileOf(key, bytes, parseManifestFile(key, bytes)), exists);
  if (!exists) {
    const ready = synced.then(async () => {
      if (sinceLook !== undefined && (await isOvertaken(dataset, version, sinceLook)))
        throw takenVersion(version);
    });
    if (!(await publishVersion(dataset.store, prepared, ready, onUnclear))) throw takenVersion(version);
  }
  onPublished?.();
  await synced;
  noteDurable(dataset, version);
  if (exists) return;
  await writeVersionHint(dataset, version).catch(() => {});
}

/** Creates the error for a version whose number another writer has taken. */
export function takenVersion(version: bigint): LanceError {
  return new LanceError("ConcurrentModification", `version ${version} was committed by another writer`);
}

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
