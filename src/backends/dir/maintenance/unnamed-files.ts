import { type DatasetRef, dataDirectory, versionsDirectory } from "../format/dataset.ts";
import { checkWritable } from "../format/manifest.ts";
import { type ManifestFile, readManifestFile, readSection } from "../format/manifest-file.ts";
import { filesOf, hasRefs } from "../format/prune.ts";
import { keyIn, listNames } from "../format/storage.ts";
import { readVersion } from "../format/version-files.ts";

/** A file, or the directory of an index, that no version of a dataset names. */
export interface UnnamedFile {
  readonly key: string;
  readonly isDirectory: boolean;
  /** Looks whether the newest version names it by now; older ones cannot come to. */
  isNamedNow(): Promise<boolean>;
}

/** Where the files are that versions name. */
const DIRECTORIES = ["data", "_transactions", "_deletions", "_indices"];

/** How many versions are read at a time. */
const READS = 16;

/**
 * Finds the files of a dataset that none of its versions names: a commit was cut off after it had written them, or
 * has not come to its version yet, which only their age can tell. Nothing is found where there are tags, branches or
 * no versions.
 *
 * @throws LanceError InvalidTableState for a version that cannot be read, Unsupported for one that needs newer software:
 *   any file may be its
 */
export async function findUnnamedFiles(dataset: DatasetRef): Promise<UnnamedFile[]> {
  const { store } = dataset;
  if (await hasRefs(dataset)) return [];
  const left = new Map<string, UnnamedFile>();
  for (const directory of DIRECTORIES) {
    for await (const page of store.list(`${dataDirectory(dataset)}/${directory}`)) {
      for (const { name, isDirectory = false } of page) {
        const isIndex = directory === "_indices";
        if (isDirectory !== isIndex || (isIndex && !UUID.test(name))) continue;
        const key = keyIn(`${dataDirectory(dataset)}/${directory}`, name);
        const isNamedNow = async () => (await namedBy(dataset, await readVersion(dataset), [key])).length > 0;
        left.set(key, { key, isDirectory, isNamedNow });
      }
    }
  }
  // They are listed after the files: what a commit has written by then is in a version here, or is young.
  const versions = (await listNames(store, versionsDirectory(dataset)))
    .filter((name) => name.endsWith(".manifest"))
    .map((name) => `${versionsDirectory(dataset)}/${name}`)
    .sort();
  if (versions.length === 0) return [];
  for (let at = 0; at < versions.length && left.size > 0; at += READS) {
    const files = await Promise.all(
      versions.slice(at, at + READS).map((key) => readManifestFile(store, key)),
    );
    for (const file of files) {
      if (file === undefined) continue;
      checkWritable(file.manifest);
      for (const key of await namedBy(dataset, file, left.keys())) left.delete(key);
    }
  }
  return [...left.values()];
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Those of some keys that a version names. */
async function namedBy(dataset: DatasetRef, file: ManifestFile, keys: Iterable<string>): Promise<string[]> {
  const { manifest } = file;
  const files = new Set(filesOf(dataset, manifest));
  const { indexSection } = manifest;
  const indices = indexSection === undefined ? NONE : Buffer.from(await readSection(file, indexSection));
  return [...keys].filter((key) => {
    const id = idOf(key);
    // A list of indices has the 16 bytes of each one's id in it, whatever else it says.
    return id === undefined ? files.has(key) : indices.includes(id);
  });
}

const NONE = Buffer.alloc(0);

/** The bytes of the id that the directory of an index is named by; undefined for other keys. */
function idOf(key: string): Buffer | undefined {
  const name = key.slice(key.lastIndexOf("/") + 1);
  return UUID.test(name) ? Buffer.from(name.replaceAll("-", ""), "hex") : undefined;
}
