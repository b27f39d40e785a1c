import { scanIpcFile } from "../../../../../arrow/file-scan.ts";
import { damagedFile } from "../../../format/files/damaged-file.ts";
import { readRoaring } from "../../../format/files/roaring.ts";

/** Maximum size of the unpacked offsets of a file, in bytes: those of a fragment with 268 million deleted rows. */
const MAX_UNPACKED_BYTES = 2 ** 30;

/**
 * Checks that the lengths in a file of deleted rows fit the file.
 *
 * Lance 12.0.0 allocates what an Arrow file says before it compares the length with the file. A length that does not fit the memory
 * ends the process.
 *
 * @param key the file; its ending says whether it is an Arrow file or a Roaring bitmap
 * @throws LanceError DataLoss
 */
export async function checkDeletions(key: string, bytes: Uint8Array): Promise<void> {
  try {
    if (key.endsWith(".bin")) readRoaring(bytes);
    else await checkOffsets(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  } catch (cause) {
    throw damagedFile(key, "is not a list of deleted rows", cause);
  }
}

async function checkOffsets(file: Buffer): Promise<void> {
  const { fields } = (await scanIpcFile(file, MAX_UNPACKED_BYTES)).schema;
  const [offsets, ...others] = fields.map(({ type, dictionary }) => (dictionary ? undefined : type));
  if (others.length > 0 || offsets?.name !== "int" || offsets.bits !== 32 || offsets.signed)
    throw new RangeError("its only column must be one of unsigned 32-bit numbers");
}
