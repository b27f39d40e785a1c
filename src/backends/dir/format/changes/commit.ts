import { dirname } from "node:path/posix";
import { setTimeout as sleep } from "node:timers/promises";
import type { Manifest } from "../../../../gen/lance/format/table_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { backoffMs, startStopwatch } from "../../../../runtime/clocks.ts";
import { createPace, inSlices, type Steps, stepsOf } from "../../../../runtime/pace.ts";
import { type DatasetRef, manifestKey } from "../dataset.ts";
import { damagedFile } from "../files/damaged-file.ts";
import { checkWritable, copySteps } from "../files/manifest.ts";
import { type ManifestFile, readManifestFile } from "../files/manifest-file.ts";
import { ensureDurable } from "../versions/make-durable.ts";
import { isOvertaken, type PreparedVersion, publishVersion } from "../versions/publish-version.ts";
import { latestVersion } from "../versions/version-files.ts";
import { writeVersionHint } from "../versions/version-hint.ts";
import { noteDurable } from "../versions/version-ledger.ts";
import { afterChange } from "./after-change.ts";
import { applyChange, type MetadataChange } from "./metadata-change.ts";
import { buildNextVersion, type Change, type NextVersion } from "./next-version.ts";

/** Options of a commit. */
export interface CommitOptions {
  /** Maximum number of attempts while others commit. Default: 50. */
  readonly attempts?: number;
  /** Stops further attempts. */
  readonly signal?: AbortSignal;
  /** Properties of the transaction. Default: none. */
  readonly properties?: Readonly<Record<string, string>>;
}

/** A version that a commit made. */
export interface CommittedVersion {
  readonly version: bigint;
  /** UUID of the transaction. */
  readonly transactionId: string;
  readonly manifest: Manifest;
}

/** Changes a manifest in place, at once or in steps; it is a copy of the previous version. */
export type ApplyChange = (manifest: Manifest) => Change | Steps<Change>;

/** Longest pause between two attempts, in milliseconds. */
const MAX_PAUSE = 200;

/**
 * Commits a change of metadata as the next version of a dataset; see {@link commitChange}.
 *
 * Unlike in the engine, two changes of a key do not conflict: the later one wins. The commit does not clean up old
 * versions.
 *
 * @throws LanceError as {@link commitChange} and {@link applyChange}
 */
export async function commitMetadata(
  dataset: DatasetRef,
  change: MetadataChange,
  options: CommitOptions = {},
): Promise<CommittedVersion> {
  function* apply(manifest: Manifest): Steps<Change> {
    return { operation: yield* applyChange(manifest, change) };
  }
  return commitChange(dataset, apply, options);
}

/**
 * Commits a change as the next version of a dataset, safely beside writers of the Lance engine.
 *
 * The new version inherits everything that does not change from the newest version, including parts that this project
 * does not know: fragments, indices, feature flags, and the name of the writer, by which later engines recognize the
 * writer's faults. Like the engine, the commit puts the manifest only if its number is free, so exactly one writer gets
 * it. A writer that loses reads the new version and applies its change to that, as if it had been called later. The
 * manifest and a file of its own record the transaction, so that other writers can decide whether their operations may
 * follow it.
 *
 * @param apply changes a copy of the newest manifest in place; each attempt calls it again, and it throws if its change
 *   cannot follow those of others.
 * @throws LanceError ConcurrentModification after the last attempt, TableVersionNotFound if the dataset has no version,
 *   Unsupported if the table needs a newer writer, and the errors of `apply`
 */
export async function commitChange(
  dataset: DatasetRef,
  apply: ApplyChange,
  { attempts = 50, signal, properties = {} }: CommitOptions = {},
): Promise<CommittedVersion> {
  for (let attempt = 0; attempt < attempts; attempt++) {
    if (attempt > 0) await sleep(Math.random() * backoffMs(attempt, 5, MAX_PAUSE), undefined, { signal });
    signal?.throwIfAborted();
    const sinceLook = startStopwatch();
    const newest = await newestFile(dataset);
    if (!newest) throw new LanceError("TableVersionNotFound", "the table has no version yet");
    checkWritable(newest.manifest);
    const next = await build(dataset, newest, apply, properties);
    if (await publish(dataset, next, sinceLook)) return finish(dataset, next);
  }
  throw new LanceError("ConcurrentModification", `other writers committed first in all ${attempts} attempts`);
}

/**
 * Commits the first version of a dataset.
 *
 * @param like a manifest file that the engine wrote; the version inherits everything that `apply` does not change
 * @throws LanceError TableAlreadyExists if the dataset has a version
 */
export async function commitFirst(
  dataset: DatasetRef,
  like: ManifestFile,
  apply: ApplyChange,
): Promise<CommittedVersion> {
  const sinceLook = startStopwatch();
  if ((await latestVersion(dataset)) !== undefined) throw alreadyExists();
  const next = await build(dataset, beforeFirst(dataset, like), apply);
  if (!(await publish(dataset, next, sinceLook))) throw alreadyExists();
  // The directory may have been created by a declaration or by the engine.
  await afterChange(async () => dataset.store.files?.syncObjects([next.key], dirname(dataset.root)));
  return finish(dataset, next);
}

/**
 * Prepares the version after the newest one, or the first, and writes its transaction file, but does not publish it.
 *
 * @param like the manifest that a first version inherits from, as in {@link commitFirst}
 * @throws LanceError Unsupported if the table needs a newer writer, and the errors of `apply`
 */
export async function prepareChange(
  dataset: DatasetRef,
  like: ManifestFile,
  apply: ApplyChange,
): Promise<PreparedVersion> {
  const sinceLook = startStopwatch();
  const newest = await newestFile(dataset);
  if (newest !== undefined) checkWritable(newest.manifest);
  const { key, bytes, scheme, file, transaction } = await build(
    dataset,
    newest ?? beforeFirst(dataset, like),
    apply,
  );
  if (transaction !== undefined) await dataset.store.put(transaction.key, transaction.bytes);
  const { version } = file.manifest;
  return { dataset, version, scheme, key, stagedKey: undefined, bytes, exists: false, sinceLook };
}

/** Reads the newest version; returns undefined if there is none. */
async function newestFile(dataset: DatasetRef): Promise<ManifestFile | undefined> {
  for (;;) {
    const latest = await latestVersion(dataset);
    if (latest === undefined) return undefined;
    const file = await readManifestFile(dataset.store, latest.key);
    if (file === undefined) continue;
    if (file.manifest.version !== latest.version) {
      throw damagedFile(file.key, `holds version ${file.manifest.version}`);
    }
    return file;
  }
}

/** Creates the version 0 that a first version follows; the store does not have it. */
function beforeFirst(dataset: DatasetRef, like: ManifestFile): ManifestFile {
  return { ...like, key: manifestKey(dataset, 0n, "V2"), manifest: { ...like.manifest, version: 0n } };
}

function alreadyExists(): LanceError {
  return new LanceError("TableAlreadyExists", "the table already exists");
}

async function build(
  dataset: DatasetRef,
  base: ManifestFile,
  apply: ApplyChange,
  properties: CommitOptions["properties"] = {},
): Promise<NextVersion> {
  const manifest = await inSlices(copySteps(base.manifest));
  const pace = createPace();
  const change = await inSlices(stepsOf(apply(manifest)));
  // A manifest may have thousands of fields or fragments.
  await pace.pauseIfDue();
  return buildNextVersion(dataset, base, manifest, { properties, ...change });
}

/** Another writer has had the number of the version. */
class Overtaken extends Error {}

/**
 * @param sinceLook the milliseconds since the version before was the newest
 * @returns false if another writer has or had the version; then nothing is left behind
 */
async function publish(dataset: DatasetRef, next: NextVersion, sinceLook: () => number): Promise<boolean> {
  const { store } = dataset;
  const { transaction } = next;
  const { version } = next.file.manifest;
  const written = Promise.all([
    transaction && store.put(transaction.key, transaction.bytes),
    version > 1n && ensureDurable(dataset, version - 1n),
  ]).then(async () => {
    if (await isOvertaken(dataset, version, sinceLook)) throw new Overtaken();
  });
  const isOurs = await publishVersion(store, next, written).catch((error: unknown) => {
    if (error instanceof Overtaken) return false;
    throw error;
  });
  if (isOurs) {
    noteDurable(dataset, version);
    return true;
  }
  if (transaction !== undefined) await store.delete(transaction.key).catch(() => {});
  return false;
}

async function finish(dataset: DatasetRef, { file, transactionId }: NextVersion): Promise<CommittedVersion> {
  const { manifest } = file;
  // A hint that is too low costs the engine a search and nothing else.
  await writeVersionHint(dataset, manifest.version).catch(() => {});
  return { version: manifest.version, transactionId, manifest };
}
