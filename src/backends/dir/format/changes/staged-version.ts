import type { Manifest } from "../../../../gen/lance/format/table_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { startStopwatch } from "../../../../runtime/time/stopwatch.ts";
import type { DatasetRef, NamingScheme } from "../dataset.ts";
import { manifestKey, parseManifestName, versionsDirectory } from "../dataset.ts";
import { checkBasePaths } from "../files/base-paths.ts";
import {
  type ManifestFile,
  manifestFileOf,
  parseManifestFile,
  readManifestFile,
} from "../files/manifest-file.ts";
import { checkChangedFragments } from "../versions/changed-fragments.ts";
import { type PreparedVersion, publishPrepared, takenVersion } from "../versions/prepared-version.ts";
import { branchNotFound, readBranch } from "../versions/refs/refs.ts";
import type { VersionEntry, VersionName } from "../versions/version-files.ts";
import { describeVersion, latestVersion } from "../versions/version-files.ts";
import { afterChange } from "./after-change.ts";

/** A manifest that a client has written and wants to publish as the next version. */
export interface StagedVersion {
  readonly version: bigint;
  /** Key of the staged manifest, which must be in the dataset's `_versions` directory. */
  readonly stagedKey: string;
  /** Expected size of the staged manifest, in bytes. */
  readonly manifestSize?: number | undefined;
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
  const [existing, bytes] = await Promise.all([dataset.store.get(key), dataset.store.get(stagedKey)]);
  if (existing) {
    if (bytes === undefined || Buffer.compare(existing, bytes) !== 0) throw takenVersion(version);
    return { dataset, version, scheme, key, stagedKey, bytes: existing, exists: true };
  }
  await checkIsNext(dataset, latest, version);
  const content = requireStaged(stagedKey, bytes);
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
  const key = path.replace(/^\//, "");
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
