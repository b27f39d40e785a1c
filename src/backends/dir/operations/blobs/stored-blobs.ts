import { LanceError } from "../../../../namespace/errors.ts";
import { freeAtOnce } from "../../../../runtime/free-at-once.ts";
import type { Guarded } from "../tables/call-data.ts";

/** Size of the pieces in which a blob is read, in bytes. */
export const PIECE_BYTES = 4 * 1024 * 1024;

/** The blob of a row. */
export interface StoredBlob {
  /** In bytes. */
  readonly size: number;
  /**
   * Reads the bytes from `start` up to `end`, which is not included, piece by piece.
   *
   * @param frees whether a piece, except for the first, is no longer read when the next one is asked for
   */
  read(start: number, end: number, frees: boolean): AsyncIterable<Uint8Array>;
}

/** The kind of a blob that is not in the files of its table. */
const EXTERNAL = 3;

/**
 * Opens the blobs of rows, in their order; undefined for a row without a blob. No bytes are read yet.
 *
 * @throws LanceError InvalidInput for a column without blobs and for missing rows; Unsupported for a blob that is
 *   elsewhere: with the rights of the server, a caller could read any file that a table names
 */
export async function openBlobs(
  data: Guarded,
  column: string,
  rowIds: readonly bigint[],
): Promise<(StoredBlob | undefined)[]> {
  const { table, wait } = data;
  // The engine looks for the file of each blob that it opens, wherever that is.
  const looked = await Promise.allSettled([hasExternal(data, column, rowIds)]);
  if (looked[0].status === "fulfilled" && looked[0].value) {
    const name = JSON.stringify(column);
    throw new LanceError("Unsupported", `column ${name} has a blob that is stored outside of the table`);
  }
  const files = await wait(() => table.fetchBlobFiles(column, [...rowIds]));
  // The engine says better what is wrong with a column.
  if (looked[0].status === "rejected") throw looked[0].reason;
  return files.map((file) => {
    if (file === null) return undefined;
    return {
      size: Number(file.size()),
      async *read(start, end, frees) {
        for (let at = start; at < end; at += PIECE_BYTES) {
          const stop = Math.min(end, at + PIECE_BYTES);
          const piece = await wait(() => file.readRange(BigInt(at), BigInt(stop)));
          yield piece;
          if (frees && at > start) freeAtOnce(piece);
        }
      },
    };
  });
}

async function hasExternal(
  { table, wait }: Guarded,
  column: string,
  rowIds: readonly bigint[],
): Promise<boolean> {
  const { tableFromIPC } = await import("apache-arrow");
  const query = table.takeRowIds([...rowIds]);
  query.selectColumns([column]);
  const batches = await wait(() => query.execute());
  for (;;) {
    const batch = await wait(() => batches.next());
    if (batch === null) return false;
    const kinds = tableFromIPC(batch).getChildAt(0)?.getChild("kind");
    if (kinds === null || kinds === undefined)
      throw new Error("the engine's descriptions of blobs have no kind");
    if (kinds.toArray().includes(EXTERNAL)) return true;
  }
}
