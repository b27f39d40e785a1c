import { dirname } from "node:path/posix";
import { setTimeout as sleep } from "node:timers/promises";
import { isLanceError, LanceError } from "../../../../namespace/errors.ts";
import type { DatasetRef, NamingScheme } from "../dataset.ts";
import { isUnanswered, unknownOutcome } from "../decisive-request.ts";
import { manifestFileOf, parseManifestFile } from "../files/manifest-file.ts";
import { UnsyncedError } from "../local/local-errors.ts";
import type { ObjectStore } from "../storage.ts";
import { RefusedCommit } from "./catalog-store.ts";
import { syncFilesOf } from "./make-durable.ts";
import { latestVersion } from "./version-files.ts";
import { writeVersionHint } from "./version-hint.ts";
import { noteDurable, noteOwnManifest } from "./version-ledger.ts";

/** Number of attempts to put a version when the store fails, and the pause between them in milliseconds. */
const PUTS = 3;
const PUT_PAUSE = 200;

/**
 * Publishes a version: gives a manifest its name, unless another writer has taken the version's number. Every version
 * that this process makes is published here; the engine publishes its own.
 *
 * The version survives a loss of power when this returns true (docs/adr/0032). If the store fails without saying
 * whether it wrote, the publisher reads what is there and puts the bytes again. The UUID of the transaction in a
 * manifest distinguishes its bytes from those of every other writer.
 *
 * @param manifest the key of the version's manifest file, and its bytes
 * @param written resolves when everything that the version refers to is durable; if it fails, the call fails. Default:
 *   resolved
 * @param onUnclear is called if a request was given up that may still write the version, even after its deletion.
 *   Default: nobody has to know
 * @returns false if another writer has the number; then nothing has been written
 * @throws UnsyncedError if readers see the version and a loss of power may undo it; LanceError OutcomeUnknown if the
 *   version may exist or may still arrive; RefusedCommit if the catalog of the versions refuses it; ServiceUnavailable, or the error of the
 *   store, if it does not
 */
export async function publishVersion(
  store: ObjectStore,
  manifest: { readonly key: string; readonly bytes: Uint8Array },
  written: Promise<unknown> = Promise.resolve(),
  onUnclear?: () => void,
): Promise<boolean> {
  const { key, bytes } = manifest;
  const isOurs = (found: Uint8Array) => Buffer.compare(found, bytes) === 0;
  const ours = () => {
    noteOwnManifest(store, key);
    return true;
  };
  let isOpen = false;
  for (let tries = 1; ; tries++) {
    try {
      if (await store.putIfAbsent(key, bytes, written, onUnclear)) return ours();
      const found = await store.get(key);
      if (found !== undefined) return isOurs(found) && ours();
      // The name is taken but missing: another process removed it in between, or the store contradicts itself.
      if (tries === PUTS) throw new LanceError("ServiceUnavailable", REFUSED);
    } catch (error) {
      // A read now does not show what is on the disk.
      if (error instanceof UnsyncedError) throw error;
      // If this has failed, the version was not tried.
      await written;
      // A refusal says that this attempt has not published it, whether or not the version can be read.
      const wasOpen = isOpen;
      const found = await store.get(key).catch(() => {
        isOpen = true;
        return undefined;
      });
      if (found !== undefined && !isOurs(found)) return false;
      if (found !== undefined) {
        // Another call may have put equal bytes without having synced their name yet.
        await store.files?.syncObjects([key], dirname(key));
        return ours();
      }
      if (error instanceof RefusedCommit) throw wasOpen ? unknownOutcome(error) : error;
      isOpen ||= isUnanswered(store, error) || isLanceError(error, "OutcomeUnknown");
      if (tries === PUTS) throw isOpen ? unknownOutcome(error) : unavailable(error);
    }
    await sleep(PUT_PAUSE);
  }
}

const REFUSED = "the storage of the catalog refuses a version as taken and has none";

function unavailable(error: unknown): LanceError {
  if (error instanceof LanceError) return error;
  return new LanceError("ServiceUnavailable", "catalog storage is failing", { cause: error });
}

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
