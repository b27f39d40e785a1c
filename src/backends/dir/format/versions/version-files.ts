import { LanceError } from "../../../../namespace/errors.ts";
import { joinIdentifier } from "../../../../namespace/identifier.ts";
import { createPace, ITEMS_PER_STEP } from "../../../../runtime/pace.ts";
import type { DatasetRef, NamingScheme } from "../dataset.ts";
import { manifestName, parseManifestName, versionsDirectory } from "../dataset.ts";
import { damagedFile } from "../files/damaged-file.ts";
import { checkReadable } from "../files/manifest.ts";
import type { ManifestFile } from "../files/manifest-file.ts";
import { readManifestFile } from "../files/manifest-file.ts";
import type { ObjectEntry, ObjectInfo } from "../storage.ts";

/** Name of a version's file. */
export interface VersionName {
  readonly version: bigint;
  readonly scheme: NamingScheme;
  readonly key: string;
}

/** A version and the storage's facts about its file. */
export interface VersionEntry extends VersionName {
  /** Size of the manifest, in bytes. */
  readonly manifestSize: number;
  readonly eTag: string | undefined;
  /** When the file was written, in milliseconds since 1970. */
  readonly timestampMillis: number;
}

/** Selection of the versions to list. */
export interface ListVersionsOptions {
  /** Whether the newest are first. Default: false. */
  readonly descending?: boolean;
  /** Version after which the listing continues. Default: from the start. */
  readonly after?: bigint | undefined;
  /** Default: all. */
  readonly limit?: number | undefined;
}

/** A version and the facts about its file that the listing included. */
export type FoundVersion = VersionName & { readonly name: string; readonly info: ObjectInfo | undefined };

/**
 * Lists versions by their files, and reads the facts of those on the page only.
 *
 * The next version replaces one that disappears meanwhile, so a page with fewer than `limit` versions is the last.
 */
export async function listVersions(
  dataset: DatasetRef,
  { descending = false, after, limit }: ListVersionsOptions = {},
): Promise<VersionEntry[]> {
  const found = await findVersions(dataset);
  const pace = createPace();
  const order = descending ? -1 : 1;
  found.sort((a, b) => (a.version < b.version ? -order : order));
  const rest =
    after === undefined
      ? found
      : found.filter(({ version }) => (descending ? version < after : version > after));
  const wanted = limit ?? rest.length;
  const entries: VersionEntry[] = [];
  await pace.pauseIfDue();
  for (let next = 0; entries.length < wanted && next < rest.length; await pace.pauseIfDue()) {
    // Beginning to read 10,000 facts takes long, and so do answers that arrive at once.
    const some = rest.slice(next, next + Math.min(wanted - entries.length, ITEMS_PER_STEP));
    next += some.length;
    const described = await Promise.all(some.map((name) => describe(dataset, name)));
    entries.push(...described.filter((entry) => entry !== undefined));
  }
  return entries;
}

/**
 * Finds the newest version; returns `undefined` if there is none.
 *
 * It takes a single listing and ignores the version hint: after deletions in the middle of the history, an upward
 * search from the hint could end too early.
 */
export async function latestVersion(dataset: DatasetRef): Promise<FoundVersion | undefined> {
  let newest: FoundVersion | undefined;
  for await (const page of dataset.store.list(versionsDirectory(dataset))) {
    for (const entry of page) {
      // Nearly all names are older versions of the second scheme, in which newer versions have smaller names.
      if (newest?.scheme === "V2" && entry.name.length === newest.name.length && entry.name >= newest.name)
        continue;
      const found = foundVersion(dataset, entry);
      if (!found) continue;
      if (dataset.store.listsInOrder && found.scheme === "V2") return found;
      checkSameScheme(dataset, newest, found);
      if (!newest || found.version > newest.version) newest = found;
    }
  }
  return newest;
}

/** The newest version of a dataset, and an earlier one, if the same listing showed it. */
export interface NewestVersion {
  readonly newest: FoundVersion | undefined;
  readonly earlier: FoundVersion | undefined;
}

/** Finds the newest version, like {@link latestVersion}, and what the same listing says about an earlier one. */
export async function latestVersionAnd(dataset: DatasetRef, earlier: VersionName): Promise<NewestVersion> {
  if (!listsNewestFirst(dataset, earlier))
    return { newest: await latestVersion(dataset), earlier: undefined };
  const found = await newestVersions(dataset);
  return { newest: found[0], earlier: found.find(({ version }) => version === earlier.version) };
}

/** Maximum number of versions that {@link newestVersions} finds: the request of a read must stay small, however many there are. */
const NEWEST_VERSIONS = 16;

/** Whether a listing shows the newest versions of a dataset first, according to the name of a version. */
export function listsNewestFirst({ store }: DatasetRef, { scheme }: Pick<VersionName, "scheme">): boolean {
  return store.listsInOrder && scheme === "V2";
}

/** Finds the newest versions of a dataset that {@link listsNewestFirst}, the newest first; in a bucket by a single request. */
export async function newestVersions(dataset: DatasetRef): Promise<FoundVersion[]> {
  for await (const page of dataset.store.list(versionsDirectory(dataset), NEWEST_VERSIONS)) {
    const found: FoundVersion[] = [];
    for (const entry of page) {
      const version = foundVersion(dataset, entry);
      if (version !== undefined) found.push(version);
      if (found.length === NEWEST_VERSIONS) break;
    }
    if (found.length > 0) return found;
  }
  return [];
}

/** Returns the newest of some versions. */
export function newestOf<T extends VersionName>(versions: readonly T[]): T | undefined {
  let newest: T | undefined;
  for (const version of versions) if (!newest || version.version > newest.version) newest = version;
  return newest;
}

/**
 * Describes a version.
 *
 * @param version default: the newest
 * @throws LanceError TableVersionNotFound
 */
export async function describeVersion(dataset: DatasetRef, version?: bigint): Promise<VersionEntry> {
  for (const candidate of await candidates(dataset, version)) {
    const entry = await describe(dataset, candidate);
    if (entry) return entry;
  }
  throw versionNotFound(dataset, version);
}

/**
 * Reads the manifest of a version.
 *
 * @param version default: the newest
 * @throws LanceError TableVersionNotFound, Unsupported if the version needs a newer reader, DataLoss if its file is
 *   corrupt
 */
export async function readVersion(dataset: DatasetRef, version?: bigint): Promise<ManifestFile> {
  const file = await readVersionIfThere(dataset, version);
  if (file === undefined) throw versionNotFound(dataset, version);
  return file;
}

/**
 * Reads the manifest of a version, like {@link readVersion}; returns `undefined` if the version does not exist.
 *
 * @param version default: the newest
 * @throws LanceError Unsupported, DataLoss
 */
export async function readVersionIfThere(
  dataset: DatasetRef,
  version?: bigint,
): Promise<ManifestFile | undefined> {
  for (const { key } of await candidates(dataset, version)) {
    const file = await readManifestFile(dataset.store, key);
    if (!file) continue;
    checkReadable(file.manifest);
    return file;
  }
  return undefined;
}

/**
 * Finds all versions, in no particular order.
 *
 * @throws LanceError DataLoss if the directory mixes both naming schemes
 */
export async function findVersions(dataset: DatasetRef): Promise<FoundVersion[]> {
  const all: FoundVersion[] = [];
  const pace = createPace();
  for await (const page of dataset.store.list(versionsDirectory(dataset))) {
    for (const [index, entry] of page.entries()) {
      if (index % ITEMS_PER_STEP === 0) await pace.pauseIfDue();
      const found = foundVersion(dataset, entry);
      if (!found) continue;
      checkSameScheme(dataset, all[0], found);
      all.push(found);
    }
  }
  return all;
}

function foundVersion(dataset: DatasetRef, { name, info }: ObjectEntry): FoundVersion | undefined {
  const parsed = parseManifestName(name);
  return parsed && { ...parsed, name, key: `${versionsDirectory(dataset)}/${name}`, info };
}

function checkSameScheme(dataset: DatasetRef, a: VersionName | undefined, b: VersionName): void {
  if (!a || a.scheme === b.scheme) return;
  throw damagedFile(versionsDirectory(dataset), "has manifests of both naming schemes");
}

/**
 * Finds where a version may be: the newest where the listing has it, a given one under either name, as in the engine.
 */
async function candidates(dataset: DatasetRef, version: bigint | undefined): Promise<FoundVersion[]> {
  if (version === undefined) {
    const latest = await latestVersion(dataset);
    return latest ? [latest] : [];
  }
  if (version < 0n || version > 0xffff_ffff_ffff_ffffn) return [];
  const names = (["V2", "V1"] as const).map((scheme) => manifestName(version, scheme));
  return names.map((name) => foundVersion(dataset, { name })).filter((found) => found !== undefined);
}

async function describe(
  { store }: DatasetRef,
  { version, scheme, key, info: known }: FoundVersion,
): Promise<VersionEntry | undefined> {
  const info = known ?? (await store.head(key));
  if (!info) return undefined;
  const { size: manifestSize, eTag, modifiedMillis: timestampMillis } = info;
  return { version, scheme, key, manifestSize, eTag, timestampMillis };
}

/** Returns the error for a version that does not exist. @param version undefined for a table without one */
export function versionNotFound({ table }: DatasetRef, version: bigint | undefined): LanceError {
  const where = table === undefined ? "" : ` in table '${joinIdentifier(table)}'`;
  const message =
    version === undefined
      ? "the table has no version yet"
      : `Version not found error: version ${version} does not exist${where}`;
  return new LanceError("TableVersionNotFound", message);
}
