import { randomUUID } from "node:crypto";
import { dirname } from "node:path/posix";
import { setTimeout as sleep } from "node:timers/promises";
import { clone, create, toBinary } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Manifest } from "../../../gen/lance/format/table_pb.ts";
import { ManifestSchema } from "../../../gen/lance/format/table_pb.ts";
import type { Transaction } from "../../../gen/lance/format/transaction_pb.ts";
import { TransactionSchema } from "../../../gen/lance/format/transaction_pb.ts";
import { LanceError } from "../../../namespace/errors.ts";
import type { DatasetRef } from "./dataset.ts";
import { FIRST_DETACHED_VERSION, manifestKey, transactionKey } from "./dataset.ts";
import { UnsyncedError } from "./local-errors.ts";
import { checkWritable, FLAG_NO_TRANSACTION_FILES } from "./manifest.ts";
import type { ManifestFile } from "./manifest-file.ts";
import { buildManifestFile, readInheritedPart, readManifestFile } from "./manifest-file.ts";
import type { MetadataChange } from "./metadata-change.ts";
import { applyChange } from "./metadata-change.ts";
import type { PreparedVersion } from "./staged-version.ts";
import { latestVersion } from "./version-files.ts";
import { writeVersionHint } from "./version-hint.ts";

/** How to commit. */
export interface CommitOptions {
  /** How often to try, at most, while others commit. Default: 50. */
  readonly attempts?: number;
  /** Stops further attempts. */
  readonly signal?: AbortSignal;
  /** Properties of the transaction. Default: none. */
  readonly properties?: Readonly<Record<string, string>>;
}

/** A version that a commit made. */
export interface CommittedVersion {
  readonly version: bigint;
  /** The uuid of the transaction. */
  readonly transactionId: string;
  readonly manifest: Manifest;
}

/** The longest pause between two attempts, in milliseconds. */
const MAX_PAUSE = 200;

/** What a commit changes. */
export interface Change {
  /** What the transaction says was done. */
  readonly operation: Transaction["operation"];
  /** Whether the next version has none of the indices. Default: false. */
  readonly dropsIndices?: boolean;
}

/**
 * Commits a change of metadata as the next version of a dataset; see {@link commitChange}.
 *
 * Unlike in the engine, two changes of one key do not conflict, the later one wins; and no old versions are
 * cleaned up after the commit.
 *
 * @throws LanceError those of {@link commitChange} and of {@link applyChange}
 */
export async function commitMetadata(
  dataset: DatasetRef,
  change: MetadataChange,
  options: CommitOptions = {},
): Promise<CommittedVersion> {
  return commitChange(
    dataset,
    (manifest) => ({ operation: { case: "updateConfig", value: applyChange(manifest, change) } }),
    options,
  );
}

/**
 * Commits a change as the next version of a dataset, beside writers of the Lance engine.
 *
 * Everything that is not changed is taken over from the newest version as it is, also what this project does
 * not know: fragments, indices, feature flags, the name of the writer (whose faults the next engine looks for by
 * it). The manifest is put if no other has the number, as the engine does, so exactly one writer gets it; a
 * loser reads the new version and applies its change to that, which is as if it had been called later. With
 * the transaction in the manifest and in its file, other writers see what the operation was and decide whether
 * theirs can follow it.
 *
 * @param apply changes a copy of the newest manifest in place; it is called again for each attempt, and throws
 *   when its change cannot follow what others did.
 * @throws LanceError ConcurrentModification after the last attempt, TableVersionNotFound if there is no
 *   version yet, Unsupported if the table needs a newer writer, and those of `apply`
 */
export async function commitChange(
  dataset: DatasetRef,
  apply: (manifest: Manifest) => Change,
  { attempts = 50, signal, properties = {} }: CommitOptions = {},
): Promise<CommittedVersion> {
  for (let attempt = 0; attempt < attempts; attempt++) {
    if (attempt > 0)
      await sleep(Math.random() * Math.min(5 * 2 ** attempt, MAX_PAUSE), undefined, { signal });
    signal?.throwIfAborted();
    const file = await newestFile(dataset);
    if (!file) throw new LanceError("TableVersionNotFound", "the table has no version yet");
    checkWritable(file.manifest);
    const { dropsIndices = false, ...next } = prepare(file, apply, properties);
    const key = manifestKey(dataset, next.manifest.version, file.scheme);
    const inherited = dropsIndices ? new Uint8Array() : await readInheritedPart(file);
    if (!(await publish(dataset, key, next, inherited, file.signature))) continue;
    // The commit stands; a hint that is too low only costs the engine a search.
    await writeVersionHint(dataset, next.manifest.version).catch(() => {});
    return { version: next.manifest.version, transactionId: next.transactionId, manifest: next.manifest };
  }
  throw new LanceError("ConcurrentModification", `others committed each time in ${attempts} attempts`);
}

/**
 * Commits the first version of a dataset.
 *
 * @param like a manifest file that the engine wrote, whose manifest it takes over but for what `apply` changes
 * @throws LanceError TableAlreadyExists, when the dataset has a version
 */
export async function commitFirst(
  dataset: DatasetRef,
  like: ManifestFile,
  apply: (manifest: Manifest) => Change,
): Promise<CommittedVersion> {
  if ((await latestVersion(dataset)) !== undefined) throw alreadyExists();
  const origin = { ...like, manifest: { ...clone(ManifestSchema, like.manifest), version: 0n } };
  const { dropsIndices: _, ...next } = prepare(origin, apply, {});
  const key = manifestKey(dataset, 1n, "V2");
  if (!(await publish(dataset, key, next, new Uint8Array(), like.signature))) throw alreadyExists();
  // The directory may be one that was declared, or that the engine has made.
  await dataset.store.files?.syncObjects([key], dirname(dataset.root));
  await writeVersionHint(dataset, 1n).catch(() => {});
  return { version: 1n, transactionId: next.transactionId, manifest: next.manifest };
}

/**
 * Prepares the version after the newest one, or the first, without publishing it; a file of its transaction is written.
 *
 * @param like what the first version takes over but for what `apply` changes, as in {@link commitFirst}
 * @throws LanceError Unsupported if the table needs a newer writer, and those of `apply`
 */
export async function prepareChange(
  dataset: DatasetRef,
  like: ManifestFile,
  apply: (manifest: Manifest) => Change,
): Promise<PreparedVersion> {
  const newest = await newestFile(dataset);
  if (newest !== undefined) checkWritable(newest.manifest);
  const origin = newest ?? { ...like, manifest: { ...clone(ManifestSchema, like.manifest), version: 0n } };
  const { dropsIndices, ...next } = prepare(origin, apply, {});
  const { version } = next.manifest;
  const scheme = newest?.scheme ?? "V2";
  const inherited = newest === undefined || dropsIndices ? new Uint8Array() : await readInheritedPart(newest);
  const { bytes, file } = build(dataset, next, inherited, origin.signature);
  if (file !== undefined) await dataset.store.put(file, next.transaction);
  const key = manifestKey(dataset, version, scheme);
  return { dataset, version, scheme, key, stagedKey: undefined, bytes, exists: false };
}

/** The newest version and how it is named; undefined when there is none. */
async function newestFile(dataset: DatasetRef) {
  for (;;) {
    const latest = await latestVersion(dataset);
    if (latest === undefined) return undefined;
    const file = await readManifestFile(dataset.store, latest.key);
    if (file === undefined) continue;
    if (file.manifest.version !== latest.version) {
      throw new Error(`${file.key} holds version ${file.manifest.version}`);
    }
    return { ...file, scheme: latest.scheme };
  }
}

function alreadyExists(): LanceError {
  return new LanceError("TableAlreadyExists", "the table already exists");
}

interface Prepared {
  readonly manifest: Manifest;
  readonly transaction: Uint8Array;
  readonly transactionId: string;
}

function prepare(
  { key, manifest: read }: ManifestFile,
  apply: (manifest: Manifest) => Change,
  transactionProperties: Readonly<Record<string, string>>,
): Prepared & Pick<Change, "dropsIndices"> {
  const manifest = clone(ManifestSchema, read);
  const { operation, dropsIndices = false } = apply(manifest);
  const uuid = randomUUID();
  const writesFile = (manifest.writerFeatureFlags & FLAG_NO_TRANSACTION_FILES) === 0n;
  manifest.version = read.version + 1n;
  if (manifest.version >= FIRST_DETACHED_VERSION)
    throw new Error(`${key} is of the last version that can be`);
  manifest.timestamp = timestampFromMs(Date.now());
  manifest.tag = "";
  manifest.versionAuxData = 0n;
  manifest.transactionFile = writesFile ? `${read.version}-${uuid}.txn` : "";
  manifest.transactionSectionDeprecated = undefined;
  if (dropsIndices) manifest.indexSection = undefined;
  const transaction = create(TransactionSchema, {
    readVersion: read.version,
    uuid,
    transactionProperties,
    operation,
  });
  return {
    manifest,
    transaction: toBinary(TransactionSchema, transaction),
    transactionId: uuid,
    dropsIndices,
  };
}

/** The bytes of a version's manifest, and the key of its transaction's file, if it has one. */
function build(
  dataset: DatasetRef,
  { manifest, transaction }: Prepared,
  inherited: Uint8Array,
  signature: Uint8Array,
): { readonly bytes: Uint8Array; readonly file: string | undefined } {
  manifest.transactionSection = BigInt(inherited.byteLength);
  const bytes = buildManifestFile(inherited, transaction, manifest, signature);
  const { transactionFile } = manifest;
  return { bytes, file: transactionFile === "" ? undefined : transactionKey(dataset, transactionFile) };
}

/** @returns false if another writer has the version; nothing is left behind then */
async function publish(
  dataset: DatasetRef,
  key: string,
  next: Prepared,
  inherited: Uint8Array,
  signature: Uint8Array,
): Promise<boolean> {
  const { store } = dataset;
  const { bytes, file } = build(dataset, next, inherited, signature);
  const { transaction } = next;
  if (file !== undefined) await store.put(file, transaction);
  const created = await store.putIfAbsent(key, bytes).catch(async (error: unknown) => {
    // The answer may have been lost on its way, and the version be there.
    if (!(error instanceof UnsyncedError) && (await holds(dataset, key, bytes))) return true;
    throw error;
  });
  // A store that repeats a request by itself may refuse what it has just written.
  if (created || (await holds(dataset, key, bytes))) return true;
  if (file !== undefined) await store.delete(file).catch(() => {});
  return false;
}

/** The uuid of the transaction makes the bytes of each attempt different from all others. */
async function holds({ store }: DatasetRef, key: string, bytes: Uint8Array): Promise<boolean> {
  const found = await store.get(key);
  return found !== undefined && Buffer.compare(found, bytes) === 0;
}
