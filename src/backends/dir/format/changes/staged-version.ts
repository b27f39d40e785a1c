import type { Manifest } from "../../../../gen/lance/format/table_pb.ts";
import type { Transaction } from "../../../../gen/lance/format/transaction_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { startStopwatch } from "../../../../runtime/clocks.ts";
import {
  type DatasetRef,
  keyOfManifestPath,
  manifestKey,
  type NamingScheme,
  parseManifestName,
  versionsDirectory,
} from "../dataset.ts";
import { checkBasePaths } from "../files/base-paths.ts";
import {
  type ManifestFile,
  manifestFileOf,
  parseManifestFile,
  readManifestFile,
} from "../files/manifest-file.ts";
import { type PreparedVersion, publishPrepared, takenVersion } from "../versions/publish-version.ts";
import { branchNotFound, readBranch } from "../versions/refs/refs.ts";
import { readTransactionMessage } from "../versions/transaction-records.ts";
import {
  describeVersion,
  findVersions,
  latestVersion,
  newestOf,
  type VersionEntry,
  type VersionName,
} from "../versions/version-files.ts";
import { afterChange } from "./after-change.ts";

/** A manifest that a client has written and wants to publish as the next version. */
export interface StagedVersion {
  readonly version: bigint;
  /** Key of the staged manifest, which must be in the dataset's `_versions` directory. */
  readonly stagedKey: string;
  /** Expected size of the staged manifest, in bytes. */
  readonly manifestSize?: number | undefined;
  /**
   * Expected entity tag of the staged manifest, compared where the store has such tags. A disk has none, and Google's
   * differ between the interfaces of the service.
   */
  readonly eTag?: string | undefined;
  /** Default: the scheme of the other versions, or V2 for the first. */
  readonly namingScheme?: NamingScheme | undefined;
}

/**
 * Publishes a staged manifest as a version: the commit of managed versioning (contract 6.5).
 *
 * The number must be the newest plus one. The first version of main is 1, and that of a branch its parent version. A
 * branch that is not registered yet accepts any number, because its first version is written before the registration. A
 * version that exists with the bytes of the staged file is a success. The staged file is removed on success and remains on
 * failure, so a call that is repeated after a success fails; Lance's clients look then whether the version has their
 * transaction, and others may send an idempotency key.
 *
 * The checks are stricter than in the directory catalog of Lance: the file must be in the dataset, contain a manifest
 * and name the version that it is to become, the fragments that it changes must still exist, and it must name no
 * directories outside of the table that the version before does not name. A table does not get a second naming scheme,
 * because it could not be opened after that.
 *
 * @param adopt is called with the newest version before the new one builds on it. Default: does nothing
 * @throws LanceError InvalidInput if the file does not exist or is unsuitable, PermissionDenied if it names directories
 *   of others, ConcurrentModification if the number is not the next or is taken or if the fragments that it changes are
 *   gone, TableBranchNotFound, OutcomeUnknown if the storage fails after it has the version
 */
export async function createVersion(
  dataset: DatasetRef,
  staged: StagedVersion,
  adopt: (latest: bigint) => Promise<void> = async () => {},
): Promise<VersionEntry> {
  const sinceLook = startStopwatch();
  const latest = await latestVersion(dataset);
  if (latest !== undefined) await adopt(latest.version);
  const prepared = { ...(await prepareVersion(dataset, staged, latest)), sinceLook };
  await publishPrepared(prepared);
  return afterChange(() => finishVersion(prepared));
}

/** The version that a staged one follows. */
export interface Predecessor extends VersionName {
  /** Its manifest file; undefined if it is to be read from the store. */
  readonly bytes?: Uint8Array;
}

/**
 * Checks whether a staged manifest can become a version; writes nothing. See {@link createVersion}.
 *
 * @param latest the version that it must follow
 */
export async function prepareVersion(
  dataset: DatasetRef,
  staged: StagedVersion,
  latest: Predecessor | undefined,
): Promise<PreparedVersion> {
  const { version } = staged;
  const stagedKey = checkStagedKey(dataset, staged.stagedKey);
  const scheme = staged.namingScheme ?? latest?.scheme ?? "V2";
  const key = manifestKey(dataset, version, scheme);
  const [existing, found] = await Promise.all([
    dataset.store.get(key),
    readTagged(dataset, stagedKey, staged),
  ]);
  const bytes = found?.bytes;
  if (existing) {
    if (bytes === undefined || Buffer.compare(existing, bytes) !== 0) throw takenVersion(version);
    return { dataset, version, scheme, key, stagedKey, bytes: existing, exists: true };
  }
  await checkIsNext(dataset, latest, version);
  const content = requireStaged(stagedKey, bytes);
  checkTag(staged, found?.tag);
  const file = checkContent(staged, content);
  if (latest && latest.scheme !== scheme) {
    throw new LanceError("InvalidInput", `the table's manifests are named by scheme ${latest.scheme}`);
  }
  const readPrevious = async () => latest && readPredecessor(dataset, latest);
  if (latest) await checkChangedFragments(dataset, file, readPrevious);
  await checkBasePaths(dataset, file.manifest, readPrevious);
  return { dataset, version, scheme, key, stagedKey, bytes: content, exists: false };
}

/** Reads a staged manifest; publishes nothing. @throws LanceError InvalidInput if it does not exist or is unsuitable */
export async function readStaged(dataset: DatasetRef, staged: StagedVersion): Promise<ManifestFile> {
  const key = checkStagedKey(dataset, staged.stagedKey);
  return checkContent(staged, requireStaged(key, await dataset.store.get(key)));
}

/** Reads a staged manifest, and its entity tag if that is to be compared. */
async function readTagged(
  { store }: DatasetRef,
  key: string,
  { eTag }: StagedVersion,
): Promise<{ readonly bytes: Uint8Array; readonly tag?: string } | undefined> {
  if (eTag !== undefined && store.hasEntityTags) return store.getTagged(key);
  const bytes = await store.get(key);
  return bytes && { bytes };
}

/** @throws LanceError InvalidInput for a staged manifest that is not the one that the client has written */
function checkTag({ stagedKey, eTag }: StagedVersion, found: string | undefined): void {
  if (eTag === undefined || found === undefined || opaqueTag(eTag) === opaqueTag(found)) return;
  throw new LanceError(
    "InvalidInput",
    `the staged manifest ${stagedKey} has the e_tag ${opaqueTag(found)}, not ${opaqueTag(eTag)}`,
  );
}

/** Returns an entity tag without its quotes, which services and clients may leave out, and without its mark as a weak one. */
function opaqueTag(tag: string): string {
  return tag.replace(/^(?:W\/)?"?(.*?)"?$/s, "$1");
}

function requireStaged(key: string, bytes: Uint8Array | undefined): Uint8Array {
  if (bytes) return bytes;
  throw new LanceError("InvalidInput", `there is no staged manifest ${key}`);
}

/** Removes the staged file of a published version and describes the version. */
export async function finishVersion({ dataset, version, stagedKey }: PreparedVersion): Promise<VersionEntry> {
  // The version is committed; a staged file that remains is not a version and does no harm.
  if (stagedKey !== undefined) await dataset.store.delete(stagedKey).catch(() => {});
  return describeVersion(dataset, version);
}

function checkStagedKey(dataset: DatasetRef, path: string): string {
  const directory = `${versionsDirectory(dataset)}/`;
  const key = keyOfManifestPath(path);
  const name = key.slice(directory.length);
  const fits = key.startsWith(directory) && /^[^/\0]+$/.test(name) && parseManifestName(name) === undefined;
  if (fits && name !== "." && name !== "..") return key;
  throw new LanceError(
    "InvalidInput",
    `the staged manifest ${path} is not in the table's _versions directory`,
  );
}

async function checkIsNext(
  dataset: DatasetRef,
  latest: Pick<VersionName, "version"> | undefined,
  version: bigint,
): Promise<void> {
  const expected = latest ? latest.version + 1n : await firstVersion(dataset, version);
  if (latest && dataset.branch !== undefined && !(await readBranch(dataset, dataset.branch))) {
    // The remains of a deleted branch.
    throw branchNotFound(dataset.branch);
  }
  if (version === expected) return;
  throw new LanceError("ConcurrentModification", `the next version is ${expected}, not ${version}`);
}

async function firstVersion({ branch, ...main }: DatasetRef, version: bigint): Promise<bigint> {
  if (branch === undefined) return 1n;
  const registered = await readBranch(main, branch);
  if (registered) return registered.parentVersion;
  if (await latestVersion(main)) return version;
  throw branchNotFound(branch);
}

/** @throws LanceError InvalidInput */
function checkContent(staged: StagedVersion, bytes: Uint8Array): ManifestFile {
  const { version, stagedKey, manifestSize } = staged;
  if (manifestSize !== undefined && manifestSize !== bytes.byteLength) {
    const message = `the staged manifest ${stagedKey} has ${bytes.byteLength} bytes, not ${manifestSize}`;
    throw new LanceError("InvalidInput", message);
  }
  const file = openStaged(stagedKey, bytes);
  const said = file.manifest.version;
  if (said !== version) {
    throw new LanceError(
      "InvalidInput",
      `the staged manifest ${stagedKey} is of version ${said}, not ${version}`,
    );
  }
  return file;
}

function openStaged(key: string, bytes: Uint8Array): ManifestFile {
  try {
    return manifestFileOf(key, bytes, parseManifestFile(key, bytes));
  } catch (error) {
    throw new LanceError("InvalidInput", `${key} is not a manifest`, { cause: error });
  }
}

/** Reads the manifest of a predecessor; undefined if it has been deleted. */
async function readPredecessor({ store }: DatasetRef, latest: Predecessor): Promise<Manifest | undefined> {
  if (latest.bytes !== undefined) return parseManifestFile(latest.key, latest.bytes);
  return (await readManifestFile(store, latest.key))?.manifest;
}

/**
 * Checks that the fragments in which a staged manifest deletes or updates rows are in the version that it follows.
 *
 * Lance applies such a transaction to the fragments that it finds and ignores the others. A writer that has computed a
 * change before a compaction, and commits it as if it had read the compacted version, would therefore lose deletions
 * and duplicate updated rows without an error.
 *
 * Lance also compares such a transaction with those of all versions that its writer has not read, and does not notice that some of them
 * have been pruned.
 *
 * @param readPrevious reads the version that the staged one follows; undefined if it has been deleted
 * @throws LanceError ConcurrentModification if a fragment is gone, or a version that the writer has not read
 */
async function checkChangedFragments(
  dataset: DatasetRef,
  staged: ManifestFile,
  readPrevious: () => Promise<Manifest | undefined>,
): Promise<void> {
  const transaction = await readTransactionMessage(dataset, staged);
  const changed = changedFragments(transaction);
  if (transaction === undefined || changed.length === 0) return;
  const previous = await readPrevious();
  if (previous === undefined) return;
  await checkUnread(dataset, transaction.readVersion, previous.version);
  const existing = new Set(previous.fragments.map(({ id }) => id));
  const gone = changed.filter((id) => !existing.has(id));
  if (gone.length === 0) return;
  throw new LanceError(
    "ConcurrentModification",
    `version ${previous.version} lacks the changed fragments ${gone.join(", ")}: they were compacted or removed after they were read`,
  );
}

/** Checks that no version is gone between the one that a writer has read and the newest, which the storage need not have yet. */
async function checkUnread(dataset: DatasetRef, read: bigint, newest: bigint): Promise<void> {
  if (read + 1n >= newest) return;
  const unread = (await findVersions(dataset)).filter(({ version }) => version > read);
  const stored = newestOf(unread)?.version ?? read;
  if (BigInt(unread.length) === stored - read) return;
  throw new LanceError(
    "ConcurrentModification",
    `versions between ${read}, which the change is based on, and ${newest} were pruned, so its conflicts with them are unknown`,
  );
}

/** Returns the ids of the fragments in which a transaction deletes or updates rows. */
function changedFragments(transaction: Transaction | undefined): readonly bigint[] {
  switch (transaction?.operation.case) {
    case "delete": {
      const { updatedFragments, deletedFragmentIds } = transaction.operation.value;
      return [...updatedFragments.map(({ id }) => id), ...deletedFragmentIds];
    }
    case "update": {
      const { updatedFragments, removedFragmentIds } = transaction.operation.value;
      return [...updatedFragments.map(({ id }) => id), ...removedFragmentIds];
    }
    default:
      return [];
  }
}
