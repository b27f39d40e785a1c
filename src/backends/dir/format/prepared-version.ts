import { LanceError } from "../../../namespace/errors.ts";
import type { DatasetRef, NamingScheme } from "./dataset.ts";
import { parseManifestFile } from "./manifest-file.ts";
import { publishVersion } from "./publish-version.ts";
import { syncFilesOf } from "./sync-version.ts";
import { writeVersionHint } from "./version-hint.ts";

/** A manifest that has been checked and may become a version. */
export interface PreparedVersion {
  readonly dataset: DatasetRef;
  readonly version: bigint;
  readonly scheme: NamingScheme;
  /** Where it will be. */
  readonly key: string;
  /** Where a client has staged it; undefined for one that was built here. */
  readonly stagedKey: string | undefined;
  readonly bytes: Uint8Array;
  /** Whether an earlier call, which is being repeated, has made it a version. */
  readonly exists: boolean;
}

/**
 * Gives a prepared version its name, unless another writer was first. The staged file stays.
 *
 * @throws LanceError ConcurrentModification, and those of {@link publishVersion}
 */
export async function publishPrepared(prepared: PreparedVersion): Promise<void> {
  const { dataset, version, key, bytes, exists } = prepared;
  // The writer that published it before, or wrote its files, may not have synced them.
  const synced = syncFilesOf(dataset, parseManifestFile(key, bytes), exists ? key : undefined);
  if (exists) return synced;
  if (!(await publishVersion(dataset.store, prepared, synced))) throw takenVersion(version);
  await writeVersionHint(dataset, version).catch(() => {});
}

/** The error for a version whose number another writer has taken. */
export function takenVersion(version: bigint): LanceError {
  return new LanceError("ConcurrentModification", `version ${version} has been committed by someone else`);
}
