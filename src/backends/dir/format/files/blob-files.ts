import type { Manifest } from "../../../../gen/lance/format/table_pb.ts";

/** The type of a column whose large values are in files of their own. */
export const BLOB_TYPE = "lance.blob.v2";

/** The metadata key of the type that Arrow does not have. */
export const EXTENSION = "ARROW:extension:name";

const DATA_FILE = /\.lance$/;

/**
 * Returns the directories in which the engine keeps the blobs of data files: a directory beside each file, with its
 * name. A manifest does not list them, and those of a file with small blobs alone do not exist.
 *
 * @param keys keys of files, of which only data files count
 */
export function blobDirectories({ fields }: Manifest, keys: readonly string[]): string[] {
  const hasBlobs = fields.some(({ metadata }) => {
    const type = metadata[EXTENSION];
    return type !== undefined && Buffer.from(type).toString() === BLOB_TYPE;
  });
  return hasBlobs ? keys.filter((key) => DATA_FILE.test(key)).map((key) => key.replace(DATA_FILE, "")) : [];
}
