import { type DatasetRef, dataDirectory, versionsDirectory } from "../format/dataset.ts";
import { blobDirectories } from "../format/files/blob-files.ts";
import { checkWritable } from "../format/files/manifest.ts";
import { type ManifestFile, readManifestFile, readSection } from "../format/files/manifest-file.ts";
import { keyIn, listNames } from "../format/storage.ts";
import { hasRefs } from "../format/versions/refs/version-refs.ts";
import { readVersion } from "../format/versions/version-files.ts";
import { filesOf } from "../format/versions/version-parts.ts";

/** A file, or the directory of an index or of blobs, to which no version of a dataset refers. */
export interface UnnamedFile {
  readonly key: string;
  readonly isDirectory: boolean;
  /** Checks whether the newest version refers to it by now; older versions cannot. */
  isNamedNow(): Promise<boolean>;
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Names in the directories of a dataset that its versions may refer to, and the manifests of commits that did not happen. */
const NAMES: Readonly<Record<string, { readonly file?: RegExp; readonly directory?: RegExp }>> = {
  // Blobs are in a directory with the name of their data file, which Lance draws.
  data: { file: /\.lance$/, directory: /^[01]{24}[0-9a-f]{26}$/ },
  _transactions: { file: /\.txn$/ },
  _deletions: { file: /\.(?:arrow|bin)$/ },
  _indices: { directory: UUID },
  _versions: { file: /\.manifest-[0-9a-f-]{32,36}$/ },
};

/** Number of versions that are read at a time. */
const READS = 16;

/**
 * Finds the files of a dataset to which no version refers: their commit was interrupted, or has not created its
 * version yet, which only their age reveals. It finds nothing if there are tags, branches or no versions.
 *
 * @throws LanceError DataLoss for an unreadable version, Unsupported for a version that needs newer
 *   software: any file may belong to it
 */
export async function findUnnamedFiles(dataset: DatasetRef): Promise<UnnamedFile[]> {
  const { store } = dataset;
  if (await hasRefs(dataset)) return [];
  const left = new Map<string, UnnamedFile>();
  for (const [directory, names] of Object.entries(NAMES)) {
    for await (const page of store.list(`${dataDirectory(dataset)}/${directory}`)) {
      for (const { name, isDirectory = false } of page) {
        if (!names[isDirectory ? "directory" : "file"]?.test(name)) continue;
        const key = keyIn(`${dataDirectory(dataset)}/${directory}`, name);
        const isNamedNow = async () => (await namedBy(dataset, await readVersion(dataset), [key])).length > 0;
        left.set(key, { key, isDirectory, isNamedNow });
      }
    }
  }
  // Versions are listed after the files: a commit's files are in a version listed here, or are young.
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

/** Returns those of some keys to which a version refers. */
async function namedBy(dataset: DatasetRef, file: ManifestFile, keys: Iterable<string>): Promise<string[]> {
  const { manifest } = file;
  const files = filesOf(dataset, manifest);
  const named = new Set([...files, ...blobDirectories(manifest, files)]);
  const { indexSection } = manifest;
  const indices = indexSection === undefined ? NONE : Buffer.from(await readSection(file, indexSection));
  return [...keys].filter((key) => {
    const id = idOf(key);
    // A list of indices contains the 16 bytes of each index's id, whatever its format.
    return id === undefined ? named.has(key) : indices.includes(id);
  });
}

const NONE = Buffer.alloc(0);

/** Returns the bytes of the id in the name of an index's directory; undefined for other keys. */
function idOf(key: string): Buffer | undefined {
  const name = key.slice(key.lastIndexOf("/") + 1);
  return UUID.test(name) ? Buffer.from(name.replaceAll("-", ""), "hex") : undefined;
}
