import type { DataFragment, Manifest } from "../../../gen/lance/format/table_pb.ts";
import { blobDirectories } from "./blob-files.ts";
import { type DatasetRef, dataDirectory, transactionKey } from "./dataset.ts";
import { deletionKey } from "./deletion-file.ts";
import { readSegmentSizes } from "./index-section.ts";
import { checkWritable } from "./manifest.ts";
import { readManifestFile } from "./manifest-file.ts";
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
  { key }: FoundVersion,
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
  if (transactionFile !== "") sizes.set(transactionKey(dataset, transactionFile), 0);
  for (const fragment of fragments) addFragment(sizes, dataset, fragment);
  return sizes;
}

function addFragment(sizes: Map<string, number>, dataset: DatasetRef, fragment: DataFragment): void {
  for (const { path, fileSizeBytes } of fragment.files) {
    sizes.set(`${dataDirectory(dataset)}/data/${path}`, Number(fileSizeBytes));
  }
  const deletions = deletionKey(dataset, fragment);
  if (deletions !== undefined) sizes.set(deletions, 0);
}
