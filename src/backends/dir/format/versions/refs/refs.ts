import { setTimeout as sleep } from "node:timers/promises";
import { isLanceError, LanceError } from "../../../../../namespace/errors.ts";
import { checkTagName, type DatasetRef, normalizeBranch, refsDirectory } from "../../dataset.ts";
import { decisiveRequest } from "../../decisive-request.ts";
import { parseJsonFile } from "../../files/damaged-file.ts";
import { listNames, type TaggedObject } from "../../storage.ts";
import { describeVersion, latestVersion } from "../version-files.ts";
import { encodeRef, listRefs, numberOf, type RefContent, readRef, refKey, textOf } from "./ref-files.ts";

/** A tag: a name for a version. */
export interface Tag {
  /** Undefined for the main branch. */
  readonly branch: string | undefined;
  readonly version: bigint;
  /** In the form of RFC 3339; older writers do not set it. */
  readonly createdAt: string | undefined;
  /** In the form of RFC 3339; older writers do not set it. */
  readonly updatedAt: string | undefined;
  /** Size of the version's manifest, in bytes. */
  readonly manifestSize: number;
  readonly metadata: Readonly<Record<string, string>>;
}

/** A branch: a separate history from a version on. */
export interface Branch {
  /** Undefined for the main branch. */
  readonly parentBranch: string | undefined;
  /** First version of the branch; it has an equal number on the parent. */
  readonly parentVersion: bigint;
  /** In seconds since 1970. */
  readonly createAt: number;
  /** Size of the parent version's manifest, in bytes. */
  readonly manifestSize: number;
  readonly metadata: Readonly<Record<string, string>>;
}

/** The version that a tag names. */
export interface TagTarget {
  /** Default: main. */
  readonly branch?: string | undefined;
  readonly version: bigint;
}

/** Lists all tags of a table, by name. */
export async function listTags(dataset: DatasetRef): Promise<Map<string, Tag>> {
  return listRefs(dataset, "tags", readTag);
}

/**
 * Reads a tag; returns `undefined` if it does not exist.
 *
 * @throws LanceError InvalidInput for an invalid name
 */
export async function readTag(dataset: DatasetRef, name: string): Promise<Tag | undefined> {
  const content = await readRef(dataset, tagKey(dataset, name));
  return content && decodeTag(content);
}

/**
 * Creates a tag. If several writers, including the engine's, create a tag concurrently, exactly one succeeds. No request
 * is left that could bring the tag back after its deletion.
 *
 * @throws LanceError InvalidInput, TableVersionNotFound, TableTagAlreadyExists; OutcomeUnknown if a bucket does not answer,
 *   and the tag does not appear
 */
export async function createTag(dataset: DatasetRef, name: string, target: TagTarget): Promise<Tag> {
  const { store } = dataset;
  const key = tagKey(dataset, name);
  const now = new Date().toISOString();
  const content = { ...(await encodeTarget(dataset, target)), createdAt: now, updatedAt: now, metadata: {} };
  const put = () => store.putIfAbsent(key, encodeRef(content), undefined, "wait");
  if (!(await decisiveRequest(store, put))) {
    throw new LanceError("TableTagAlreadyExists", `Ref conflict error: tag ${name} already exists`);
  }
  await checkStillThere(dataset, key, { content, target }, ({ tag }) => store.deleteTagged(key, tag));
  return decodeTag(content);
}

/**
 * Moves a tag. As in the engine, the last of several writers wins, and the other fields of the tag remain. A request that the
 * storage carries out late does not replace a later change.
 *
 * @throws LanceError InvalidInput, TableVersionNotFound, TableTagNotFound, ConcurrentModification
 */
export async function updateTag(dataset: DatasetRef, name: string, target: TagTarget): Promise<Tag> {
  const { store } = dataset;
  const key = tagKey(dataset, name);
  return changeTag(dataset, name, async ({ bytes, tag }) => {
    const old = parseJsonFile(key, bytes);
    const content = { ...old, ...(await encodeTarget(dataset, target)), updatedAt: new Date().toISOString() };
    if (!(await decisiveRequest(store, () => store.replace(key, encodeRef(content), tag)))) return undefined;
    await checkStillThere(dataset, key, { content, target }, (found) => store.replace(key, bytes, found.tag));
    return decodeTag(content);
  });
}

/**
 * Takes a tag back whose version was pruned when the tag was set, unless the tag has changed since. Pruning looks for tags
 * after it has deleted the manifest, so one of the two notices the other.
 *
 * @throws LanceError TableVersionNotFound
 */
async function checkStillThere(
  dataset: DatasetRef,
  key: string,
  { content, target }: { readonly content: RefContent; readonly target: TagTarget },
  takeBack: (found: TaggedObject) => Promise<unknown>,
): Promise<void> {
  try {
    await encodeTarget(dataset, target);
  } catch (error) {
    if (!isLanceError(error, "TableVersionNotFound")) return;
    const found = await dataset.store.getTagged(key);
    if (found !== undefined && Buffer.compare(found.bytes, encodeRef(content)) === 0) await takeBack(found);
    throw error;
  }
}

/**
 * Deletes a tag.
 *
 * @throws LanceError InvalidInput, TableTagNotFound, ConcurrentModification
 */
export async function deleteTag(dataset: DatasetRef, name: string): Promise<void> {
  const { store } = dataset;
  const key = tagKey(dataset, name);
  await changeTag(dataset, name, async ({ tag }) =>
    (await decisiveRequest(store, () => store.deleteTagged(key, tag))) ? true : undefined,
  );
}

/** Maximum number of attempts to change a tag while others change it. */
const MAX_ATTEMPTS = 10;

/**
 * Changes a tag as it is now.
 *
 * @param change returns undefined if another writer was faster; then it is called with what that one wrote
 */
async function changeTag<T>(
  dataset: DatasetRef,
  name: string,
  change: (found: TaggedObject) => Promise<T | undefined>,
): Promise<T> {
  const key = tagKey(dataset, name);
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    if (attempt > 0) await sleep(Math.random() * 10 * attempt);
    const found = await dataset.store.getTagged(key);
    if (found === undefined) throw tagNotFound(name);
    const changed = await change(found);
    if (changed !== undefined) return changed;
  }
  throw new LanceError("ConcurrentModification", "other writers kept changing the tag; try again");
}

/** Lists all branches of a table except main, by name. */
export async function listBranches(dataset: DatasetRef): Promise<Map<string, Branch>> {
  return listRefs(dataset, "branches", readBranch);
}

/**
 * Reads a branch; returns `undefined` if it does not exist.
 *
 * @throws LanceError InvalidInput for an invalid name
 */
export async function readBranch(dataset: DatasetRef, name: string): Promise<Branch | undefined> {
  const valid = normalizeBranch(name);
  const key = valid === undefined ? undefined : refKey(dataset, "branches", valid);
  const content = key === undefined ? undefined : await readRef(dataset, key);
  if (!content) return undefined;
  return {
    parentBranch: textOf(content["parentBranch"]),
    parentVersion: BigInt(numberOf(content["parentVersion"])),
    createAt: numberOf(content["createAt"]),
    manifestSize: numberOf(content["manifestSize"]),
    metadata: (content["metadata"] ?? {}) as Record<string, string>,
  };
}

/**
 * Opens a branch of a table as a dataset.
 *
 * @param name undefined or `main` for the main branch
 * @throws LanceError InvalidInput, TableBranchNotFound
 */
export async function openBranch(dataset: DatasetRef, name: string | undefined): Promise<DatasetRef> {
  const branch = normalizeBranch(name);
  const found: DatasetRef = { ...dataset, branch };
  if (branch !== undefined && !(await readBranch(found, branch))) throw branchNotFound(branch);
  return found;
}

/**
 * Registers what is left of a branch whose creation or deletion was cut off, so that the engine can delete it.
 *
 * @returns false if nothing is left of it
 */
export async function registerRemains(dataset: DatasetRef, name: string): Promise<boolean> {
  const remains = { ...dataset, branch: name };
  if ((await latestVersion(remains)) === undefined) return false;
  const { version, manifestSize } = await describeVersion(remains);
  const createAt = Math.floor(Date.now() / 1000);
  const content = {
    parentBranch: null,
    parentVersion: Number(version),
    createAt,
    manifestSize,
    metadata: {},
  };
  await dataset.store.putIfAbsent(refKey(dataset, "branches", name), encodeRef(content));
  return true;
}

/** Creates the error for a missing branch. */
export function branchNotFound(name: string): LanceError {
  return new LanceError("TableBranchNotFound", `Ref not found error: Branch ${name} does not exist`);
}

function tagKey(dataset: DatasetRef, name: string): string {
  return refKey(dataset, "tags", checkTagName(name));
}

async function encodeTarget(dataset: DatasetRef, target: TagTarget): Promise<RefContent> {
  const tagged = await openBranch(dataset, target.branch);
  const { version, manifestSize } = await describeVersion(tagged, target.version);
  return { branch: tagged.branch ?? null, version: Number(version), manifestSize };
}

function decodeTag(content: RefContent): Tag {
  return {
    branch: textOf(content["branch"]),
    version: BigInt(numberOf(content["version"])),
    createdAt: textOf(content["createdAt"]),
    updatedAt: textOf(content["updatedAt"]),
    manifestSize: numberOf(content["manifestSize"]),
    metadata: (content["metadata"] ?? {}) as Record<string, string>,
  };
}

/** Creates the error for a missing tag. */
export function tagNotFound(name: string): LanceError {
  return new LanceError("TableTagNotFound", `Ref not found error: tag ${name} does not exist`);
}

/** The versions of the dataset's own history to which tags and branches refer. */
export interface Refs {
  readonly versions: ReadonlySet<bigint>;
  /** Versions on which branches begin. */
  readonly branchPoints: ReadonlySet<bigint>;
  /** Distinguishes the refs from others. */
  readonly text: string;
}

/** Reads the tags and branches of a table. */
export async function readRefs(dataset: DatasetRef): Promise<Refs> {
  const own = normalizeBranch(dataset.branch);
  const [tags, branches] = [await listTags(dataset), await listBranches(dataset)];
  const tagged = [...tags.values()].filter(({ branch }) => normalizeBranch(branch) === own);
  const children = [...branches.values()].filter(({ parentBranch }) => normalizeBranch(parentBranch) === own);
  const branchPoints = new Set(children.map(({ parentVersion }) => parentVersion));
  const names = [...tags].map(([name, { branch, version }]) => [name, branch, String(version)]);
  return {
    versions: new Set([...tagged.map(({ version }) => version), ...branchPoints]),
    branchPoints,
    text: JSON.stringify([names, [...branches.keys()]]),
  };
}

/** Whether a table has tags or branches, which refer to versions. */
export async function hasRefs(dataset: DatasetRef): Promise<boolean> {
  for (const kind of ["tags", "branches"] as const) {
    if ((await listNames(dataset.store, refsDirectory(dataset, kind))).length > 0) return true;
  }
  return false;
}
