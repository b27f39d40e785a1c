import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { clone, create, toBinary } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Manifest } from "../../../gen/lance/format/table_pb.ts";
import { ManifestSchema } from "../../../gen/lance/format/table_pb.ts";
import type { Transaction } from "../../../gen/lance/format/transaction_pb.ts";
import { TransactionSchema } from "../../../gen/lance/format/transaction_pb.ts";
import { LanceError } from "../../../namespace/errors.ts";
import type { DatasetRef } from "./layout.ts";
import { FIRST_DETACHED_VERSION, manifestKey, transactionKey } from "./layout.ts";
import { checkWritable, FLAG_NO_TRANSACTION_FILES } from "./manifest.ts";
import type { ManifestFile } from "./manifest-file.ts";
import { buildManifestFile, readInheritedPart, readManifestFile } from "./manifest-file.ts";
import type { MetadataChange } from "./metadata-change.ts";
import { applyChange } from "./metadata-change.ts";
import { writeVersionHint } from "./version-hint.ts";
import { latestVersion } from "./versions.ts";

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
    const latest = await latestVersion(dataset);
    if (!latest) throw new LanceError("TableVersionNotFound", "the table has no version yet");
    const file = await readManifestFile(dataset.store, latest.key);
    if (!file) continue;
    if (file.manifest.version !== latest.version) {
      throw new Error(`${file.key} holds version ${file.manifest.version}`);
    }
    checkWritable(file.manifest);
    const { dropsIndices = false, ...next } = prepare(file, apply, properties);
    const key = manifestKey(dataset, next.manifest.version, latest.scheme);
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
  await writeVersionHint(dataset, 1n).catch(() => {});
  return { version: 1n, transactionId: next.transactionId, manifest: next.manifest };
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

/** @returns false if another writer has the version; nothing is left behind then */
async function publish(
  dataset: DatasetRef,
  key: string,
  { manifest, transaction }: Prepared,
  inherited: Uint8Array,
  signature: Uint8Array,
): Promise<boolean> {
  const { store } = dataset;
  manifest.transactionSection = BigInt(inherited.byteLength);
  const bytes = buildManifestFile(inherited, transaction, manifest, signature);
  const file =
    manifest.transactionFile === "" ? undefined : transactionKey(dataset, manifest.transactionFile);
  if (file !== undefined) await store.put(file, transaction);
  const created = await store.putIfAbsent(key, bytes).catch(async (error: unknown) => {
    // The answer may have been lost on its way, and the version be there.
    if (await holds(dataset, key, bytes)) return true;
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
