import { isLanceError, LanceError } from "../../../namespace/errors.ts";
import type { ChangeContext } from "../batch/journal.ts";
import { walkAllTables } from "../catalog/walk.ts";
import { type DatasetRef, dataDirectory, parseManifestName, versionsDirectory } from "../format/dataset.ts";
import { checkWritable } from "../format/files/manifest.ts";
import { type ManifestFile, readManifestFile, readSection } from "../format/files/manifest-file.ts";
import { keyIn, type ObjectEntry } from "../format/storage.ts";
import { identityOf } from "../format/versions/examine-versions.ts";
import { hasRefs } from "../format/versions/refs/refs.ts";
import { filesOf } from "../format/versions/version-parts.ts";
import { isForCluster } from "../jobs/job.ts";
import { directoryLeftover, fileLeftover, type Leftover, type LeftoverKind } from "./leftover.ts";
import { type IsReferred, placeOf } from "./referred-directories.ts";

/** A file, or the directory of an index or of blobs, to which no version of a dataset refers. */
export interface UnnamedFile {
  readonly key: string;
  readonly isDirectory: boolean;
  /** Checks whether a version that came meanwhile refers to it, or may do so. */
  isNamedNow(): Promise<boolean>;
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * Names in the directories of a dataset that its versions may refer to, the manifests of commits that did not happen, and the unfinished files
 * of the engine's writers on a disk, which stay if a writer is killed.
 */
const NAMES: Readonly<Record<string, { readonly file?: RegExp; readonly directory?: RegExp }>> = {
  // Blobs are in a directory with the name of their data file, which Lance draws.
  data: { file: /\.lance$|^\.tmp\w+$/, directory: /^[01]{24}[0-9a-f]{26}$/ },
  _transactions: { file: /\.txn$|^\.tmp\w+$/ },
  _deletions: { file: /\.(?:arrow|bin)$|^\.tmp\w+$/ },
  _indices: { directory: UUID },
  _versions: { file: /\.manifest-[0-9a-f-]{32,36}$/ },
};

/** Number of versions that are read at a time. */
const READS = 16;

/** Number of times that a dataset is looked at whose versions disappear meanwhile. */
const LOOKS = 3;

/**
 * Finds the files of a dataset to which no version refers: their commit was interrupted, or has not created its
 * version yet, which only their age reveals. It finds nothing if there are tags, branches or no versions, and where
 * versions keep disappearing while it looks.
 *
 * @throws LanceError DataLoss for an unreadable version, Unsupported for a version that needs newer
 *   software: any file may belong to it
 */
export async function findUnnamedFiles(dataset: DatasetRef): Promise<UnnamedFile[]> {
  if (await hasRefs(dataset)) return [];
  for (let look = 0; look < LOOKS; look++) {
    const files = await listFiles(dataset);
    if (files.size === 0) return [];
    // Versions are listed after the files: a commit's files are in a version listed here, or are young.
    const left = new Set(files.keys());
    const dropNamed = createSearch(dataset, left);
    if (!(await dropNamed())) continue;
    return [...left].map((key) => ({
      key,
      isDirectory: files.get(key) ?? false,
      isNamedNow: async () => (await hasRefs(dataset)) || !(await dropNamed()) || !left.has(key),
    }));
  }
  return [];
}

/** Lists the files and directories to which versions may refer, and tells which are directories. */
async function listFiles(dataset: DatasetRef): Promise<Map<string, boolean>> {
  const files = new Map<string, boolean>();
  for (const [part, names] of Object.entries(NAMES)) {
    const directory = `${dataDirectory(dataset)}/${part}`;
    for await (const page of dataset.store.list(directory))
      for (const { name, isDirectory = false } of page)
        if (names[isDirectory ? "directory" : "file"]?.test(name))
          files.set(keyIn(directory, name), isDirectory);
  }
  return files;
}

/**
 * Creates a function that removes the keys from `left` to which versions refer that it has not read yet. A manifest that has taken the
 * name of another is not read yet. The function returns false without versions, or if one is gone when it is read: in a directory that
 * another takes the place of, any file may be in use.
 */
function createSearch(dataset: DatasetRef, left: Set<string>): () => Promise<boolean> {
  const seen = new Set<string>();
  return async () => {
    const entries: ObjectEntry[] = [];
    for await (const page of dataset.store.list(versionsDirectory(dataset))) entries.push(...page);
    const manifests = entries.filter(({ name }) => MANIFEST.test(name)).sort(byName);
    if (!manifests.some(({ name }) => !STAGED.test(name))) return false;
    let newest = -1n;
    for (const { name } of manifests) {
      const version = parseManifestName(name)?.version ?? -1n;
      if (version > newest) newest = version;
    }
    let isWhole = true;
    for (let at = 0; at < manifests.length && left.size > 0; at += READS) {
      const read = manifests.slice(at, at + READS).map((entry) => readUnseen(dataset, entry, seen));
      for (const found of await Promise.all(read)) {
        if (found === undefined) continue;
        isWhole &&= found !== "gone";
        if (found === "gone") continue;
        const { file, identity } = found;
        const isVersion = !STAGED.test(file.key) || file.manifest.version > newest;
        if (isVersion) {
          checkKnown(file.manifest);
          for (const key of [file.key, ...(await namedBy(dataset, file, left))]) left.delete(key);
        }
        seen.add(identity);
      }
    }
    return isWhole;
  };
}

/** Names of versions, of detached versions, and of staged manifests. */
const MANIFEST = /\.manifest(?:-.*)?$/;

/**
 * Name of a staged manifest. It is a version already if its number is higher than all others, and its writer has committed it in a catalog:
 * a catalog of versions or a table of DynamoDB, whose readers put the manifest in its place.
 */
const STAGED = /\.manifest-[^/]*$/;

const byName = (a: ObjectEntry, b: ObjectEntry) => (a.name < b.name ? -1 : 1);

/** Reads a manifest; returns undefined for one that is seen already, and for a staged one that is not whole. */
async function readUnseen(
  dataset: DatasetRef,
  { name, info }: ObjectEntry,
  seen: ReadonlySet<string>,
): Promise<{ readonly file: ManifestFile; readonly identity: string } | "gone" | undefined> {
  const key = `${versionsDirectory(dataset)}/${name}`;
  const identity = await identityOf(dataset, { key, info });
  if (identity === undefined) return "gone";
  if (seen.has(identity)) return undefined;
  try {
    const file = await readManifestFile(dataset.store, key);
    return file === undefined ? "gone" : { file, identity };
  } catch (error) {
    if (STAGED.test(name) && isLanceError(error, "DataLoss")) return undefined;
    throw error;
  }
}

/** Fields of a fragment that are not in our contract and name no file: row ids and versions of rows that are in the manifest itself. */
const WITHOUT_FILES = new Set([5, 7, 9]);

/** @throws LanceError Unsupported for a version that may refer to files in a way that is not known here */
function checkKnown(manifest: ManifestFile["manifest"]): void {
  checkWritable(manifest);
  for (const { id, $unknown = [] } of manifest.fragments) {
    const field = $unknown.find(({ no }) => !WITHOUT_FILES.has(no));
    if (field === undefined) continue;
    throw new LanceError(
      "Unsupported",
      `only newer software knows the files of fragment ${id} (field ${field.no})`,
    );
  }
}

/**
 * Returns those of some keys to which a version refers. Only the names count, which are drawn, and not the directories: a version may name
 * its files by other directories and with folders, and a data file's blobs are in a directory with its name.
 */
async function namedBy(dataset: DatasetRef, file: ManifestFile, keys: Iterable<string>): Promise<string[]> {
  const named = new Set(filesOf(dataset, file.manifest).map(stemOf));
  const { indexSection } = file.manifest;
  const indices = indexSection === undefined ? NONE : Buffer.from(await readSection(file, indexSection));
  return [...keys].filter((key) => {
    const id = idOf(key);
    // A list of indices contains the 16 bytes of each index's id, whatever its format.
    return id === undefined ? named.has(stemOf(key)) : indices.includes(id);
  });
}

const NONE = Buffer.alloc(0);

/** Returns the last part of a key without its ending. */
function stemOf(key: string): string {
  return key.slice(key.lastIndexOf("/") + 1).replace(/\.[^.]*$/, "");
}

/** Returns the bytes of the id in the name of an index's directory; undefined for other keys. */
function idOf(key: string): Buffer | undefined {
  const name = key.slice(key.lastIndexOf("/") + 1);
  return UUID.test(name) ? Buffer.from(name.replaceAll("-", ""), "hex") : undefined;
}

type Context = Pick<ChangeContext, "store" | "layout" | "log">;

/** Yields the files of a dataset that none of its versions names. It passes over a dataset with a version that cannot be read. */
export async function* findUnnamed(
  context: Context,
  kind: LeftoverKind,
  dataset: DatasetRef,
  before: number,
): AsyncGenerator<Leftover> {
  const { files } = dataset.store;
  // Another program may use the target of a link.
  for (const file of await unnamedFiles(context, dataset))
    if (!(await files?.leadsThroughLink(file.key))) yield* leftoverOf(context, kind, file, before);
}

async function unnamedFiles({ log }: Context, dataset: DatasetRef): Promise<readonly UnnamedFile[]> {
  try {
    return await findUnnamedFiles(dataset);
  } catch (error) {
    if (!isLanceError(error, "DataLoss") && !isLanceError(error, "Unsupported")) throw error;
    const text = "the files of a table are passed over: one of its versions cannot be read";
    log.warn({ err: error, directory: dataset.root }, text);
    return [];
  }
}

async function* leftoverOf(
  context: Context,
  kind: LeftoverKind,
  { key, isDirectory, isNamedNow }: UnnamedFile,
  before: number,
): AsyncGenerator<Leftover> {
  const mayGo = async () => !(await isNamedNow());
  if (isDirectory) {
    yield* directoryLeftover(context, kind, key, before, mayGo);
    return;
  }
  for await (const leftover of fileLeftover(context, kind, key, before))
    yield { ...leftover, remove: async () => (await mayGo()) && leftover.remove() };
}

/**
 * Yields the files of tables that no version has: those of failed commits, and of work on a cluster that was given up. It passes over
 * tables with tags or branches, those on which a process works for long or a cluster may, those to which another table of the catalog refers,
 * and those outside of the base.
 */
export async function* findTableFiles(
  context: ChangeContext,
  before: number,
  isReferred: IsReferred,
): AsyncGenerator<Leftover> {
  const { jobs, store, work } = context;
  // A driver goes on while no gateway runs, and commits when one runs again.
  const onCluster = new Set((await jobs.open()).filter(isForCluster).map(({ spec }) => spec["location"]));
  for await (const id of walkAllTables(context)) {
    const place = await placeOf(context, id);
    if (place === undefined || onCluster.has(place.location)) continue;
    const { location, dataset } = place;
    if ((await store.files?.leadsThroughLink(dataset.root)) || (await work.isAtWork(location))) continue;
    for await (const leftover of findUnnamed(context, "table file", dataset, before)) {
      if (await isReferred(dataset.root)) break;
      const remove = async () => !(await work.isAtWork(location)) && leftover.remove();
      yield { ...leftover, remove };
    }
  }
}
