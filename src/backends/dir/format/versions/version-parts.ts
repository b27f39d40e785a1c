import type { DataFragment, Manifest } from "../../../../gen/lance/format/table_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { type DatasetRef, dataDirectory, transactionKey } from "../dataset.ts";
import { deletionKey } from "../files/deletion-file.ts";
import { readSegmentSizes } from "../files/index-section.ts";
import { blobDirectories, checkWritable } from "../files/manifest.ts";
import { readManifestFile } from "../files/manifest-file.ts";
import type { FoundVersion } from "./version-files.ts";

/** Sizes of files, or of directories, by their keys, in bytes; 0 where the version does not record the size. */
export type Sizes = ReadonlyMap<string, number>;

/** Everything that a version needs besides its manifest. */
export interface VersionParts {
  readonly files: Sizes;
  /** Directories of its indices and blobs. */
  readonly directories: Sizes;
}

/**
 * Reads a version and everything that it needs; returns undefined if it has been deleted.
 *
 * @throws LanceError Unsupported for a version that needs newer software
 */
export async function readParts(
  dataset: DatasetRef,
  { key }: Pick<FoundVersion, "key">,
): Promise<(VersionParts & { readonly manifest: Manifest }) | undefined> {
  const file = await readManifestFile(dataset.store, key);
  if (file === undefined) return undefined;
  const { manifest } = file;
  checkWritable(manifest);
  const directories = new Map<string, number>();
  for (const [id, bytes] of await readSegmentSizes(file)) {
    directories.set(`${dataDirectory(dataset)}/_indices/${id}`, bytes);
  }
  const files = sizesOf(dataset, manifest);
  for (const directory of blobDirectories(manifest, [...files.keys()])) directories.set(directory, 0);
  return { manifest, files, directories };
}

/** Returns the keys of the files that a version needs, except for its indices. */
export function filesOf(dataset: DatasetRef, manifest: Manifest): string[] {
  return [...sizesOf(dataset, manifest).keys()];
}

function sizesOf(dataset: DatasetRef, { fragments, transactionFile }: Manifest): Map<string, number> {
  const sizes = new Map<string, number>();
  if (transactionFile !== "") sizes.set(transactionKey(dataset, checkName(transactionFile)), 0);
  for (const fragment of fragments) addFragment(sizes, dataset, fragment);
  return sizes;
}

/** Parts that names of files cannot have: empty ones, dots alone, and the null character. */
const IMPOSSIBLE = /(?:^|\/)\.{0,2}(?:\/|$)|\0/;

/** @throws LanceError DataLoss for a name that no file can have */
function checkName(name: string): string {
  if (!IMPOSSIBLE.test(name)) return name;
  throw new LanceError("DataLoss", `a version names the file ${JSON.stringify(name)}, which cannot exist`);
}

function addFragment(sizes: Map<string, number>, dataset: DatasetRef, fragment: DataFragment): void {
  for (const { path, fileSizeBytes } of fragment.files) {
    sizes.set(`${dataDirectory(dataset)}/data/${checkName(path)}`, Number(fileSizeBytes));
  }
  const deletions = deletionKey(dataset, fragment);
  if (deletions !== undefined) sizes.set(deletions, 0);
}
