import { create } from "@bufbuild/protobuf";
import { createBinaryColumn } from "../../../../arrow/binary-column.ts";
import { ARROW_STREAM } from "../../../../arrow/ipc/ipc-forms.ts";
import { END_OF_STREAM } from "../../../../arrow/ipc/stream.ts";
import {
  FetchBlobsResponseSchema,
  ReadBlobResponseSchema,
} from "../../../../gen/lance/gateway/v1/lancedb_pb.ts";
import type { Call } from "../../../../namespace/call/call.ts";
import { callerKey } from "../../../../namespace/call/caller-key.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { LanceDbExtensions } from "../../../../namespace/lance-namespace.ts";
import { freeAtOnce } from "../../../../runtime/byte-memory.ts";
import type { DataContext } from "../../data/data-context.ts";
import type { ReadContext } from "../context.ts";
import type { ReadAhead } from "../read/read-ahead.ts";
import { type Guarded, openGuarded } from "../tables/call-data.ts";

/** Number of rows whose blobs are opened at a time. */
const OPEN_ROWS = 256;

/** Number of bytes that are read without a place in the memory for open results. */
const SMALL_BYTES = 64 * 1024;

/** Names the version that was read: the clients read the other ranges of the blob from that version, too. */
const VERSION_HEADER = "x-lancedb-version";

/** The operations that read blobs. Memory holds a few pieces of a blob at a time, whatever its size. */
export function createBlobOperations(
  context: DataContext & ReadContext,
): Pick<LanceDbExtensions, "fetchBlobs" | "readBlob"> {
  const { readAhead } = context;
  return {
    async *fetchBlobs({ column, rowIds, version, branch }, call) {
      const data = await openGuarded(context, call, { version, branch });
      let contentType = ARROW_STREAM;
      try {
        const first = await openBlobs(data, column, rowIds.slice(0, OPEN_ROWS));
        const bytes =
          rowIds.length > OPEN_ROWS
            ? Number.POSITIVE_INFINITY
            : first.reduce((sum, blob) => sum + sizeOf(blob), 0);
        const pieces = columnOf(data, column, rowIds, first, call.releasesChunks === true);
        for await (const piece of placed(pieces, bytes, readAhead, call)) {
          yield create(FetchBlobsResponseSchema, { data: { contentType, data: piece } });
          contentType = "";
        }
      } finally {
        data.release();
      }
    },
    async *readBlob({ column, rowId, version, branch, sourceUri }, call) {
      if (sourceUri !== undefined) {
        throw new LanceError(
          "Unsupported",
          "a blob of another table is not read through the descriptor of this one; read it from that table",
        );
      }
      const data = await openGuarded(context, call, { version, branch });
      try {
        const [blob] = await openBlobs(data, column, [rowId]);
        if (blob === undefined) return;
        const range = byteRange(call.headers["range"], blob.size);
        const { start, end } = range ?? { start: 0, end: blob.size };
        call.responseHeaders["accept-ranges"] = "bytes";
        call.responseHeaders[VERSION_HEADER] = String(await data.wait(() => data.table.version()));
        if (range !== undefined) {
          call.responseHeaders["content-range"] = `bytes ${start}-${end - 1}/${blob.size}`;
        }
        call.responseBytes = end - start;
        const pieces = blob.read(start, end, call.releasesChunks === true);
        // An answer with an empty blob has a message, and one without a blob has none.
        yield create(ReadBlobResponseSchema, { data: { contentType: "application/octet-stream" } });
        for await (const piece of placed(pieces, end - start, readAhead, call)) {
          yield create(ReadBlobResponseSchema, { data: { data: piece } });
        }
      } finally {
        data.release();
      }
    },
  };
}

const sizeOf = (blob: StoredBlob | undefined): number => blob?.size ?? 0;

/** Yields pieces that take a place in the memory for open results, unless they are small together. */
async function* placed(
  pieces: AsyncIterable<Uint8Array>,
  bytes: number,
  readAhead: ReadAhead,
  call: Call,
): AsyncIterable<Uint8Array> {
  const { signal, cutOff } = call;
  // The wire still has a piece when the next one is read.
  const held = Math.min(bytes, 2 * PIECE_BYTES);
  const place =
    bytes > SMALL_BYTES ? await readAhead.enter(held, signal, cutOff, callerKey(call)) : undefined;
  try {
    for await (const piece of pieces) {
      place?.given(piece.byteLength);
      yield piece;
      place?.taken();
    }
  } finally {
    place?.leave();
  }
}

/** Yields an Arrow IPC stream with the blobs of rows, the first of which are open already. */
async function* columnOf(
  data: Guarded,
  column: string,
  rowIds: readonly bigint[],
  first: readonly (StoredBlob | undefined)[],
  frees: boolean,
): AsyncIterable<Uint8Array> {
  const writer = await createBinaryColumn(column);
  yield writer.schema;
  for (let at = 0; at < rowIds.length; at += OPEN_ROWS) {
    const ids = rowIds.slice(at, at + OPEN_ROWS);
    const blobs = at === 0 ? first : await openBlobs(data, column, ids);
    for (const { from, to, bytes } of groupsOf(blobs)) {
      const { head, tail } = writer.batch(blobs.slice(from, to).map((blob) => blob?.size));
      yield head;
      if (bytes > PIECE_BYTES) yield* (blobs[from] as StoredBlob).read(0, bytes, frees);
      else {
        const values = await data.wait(() => data.table.fetchBlobs(column, ids.slice(from, to)));
        yield Buffer.concat(values.filter((value) => value !== null));
      }
      yield tail;
    }
  }
  yield END_OF_STREAM;
}

/** Groups neighbours up to the size of a piece, which the engine reads at once; a larger blob is alone. */
function* groupsOf(
  blobs: readonly (StoredBlob | undefined)[],
): Iterable<{ readonly from: number; readonly to: number; readonly bytes: number }> {
  let [from, bytes] = [0, 0];
  for (const [to, blob] of blobs.entries()) {
    if (to > from && bytes + sizeOf(blob) > PIECE_BYTES) {
      yield { from, to, bytes };
      [from, bytes] = [to, 0];
    }
    bytes += sizeOf(blob);
  }
  if (blobs.length > from) yield { from, to: blobs.length, bytes };
}

/** A range of bytes; `end` is not included. */
interface ByteRange {
  readonly start: number;
  readonly end: number;
}

const SINGLE = /^bytes=(\d{0,15})-(\d{0,15})$/;

/**
 * Returns the range that the header `range` names (RFC 9110, section 14.2); undefined if there is none, or another
 * unit or several ranges, which a server may ignore.
 *
 * @param size number of bytes that there are
 * @throws LanceError RangeNotSatisfiable, if none of the bytes is in the range
 */
export function byteRange(header: string | undefined, size: number): ByteRange | undefined {
  const [, first = "", last = ""] = SINGLE.exec(header?.trim() ?? "") ?? [];
  if (first === "" && last === "") return undefined;
  if (first !== "" && last !== "" && Number(last) < Number(first)) return undefined;
  const start = first === "" ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === "" || last === "" ? size : Math.min(size, Number(last) + 1);
  if (start < end) return { start, end };
  throw new LanceError("RangeNotSatisfiable", `no byte of the ${size} bytes is in the range ${header}`, {
    headers: { "content-range": `bytes */${size}` },
  });
}

/** Size of the pieces in which a blob is read, in bytes. */
const PIECE_BYTES = 4 * 1024 * 1024;

/** The blob of a row. */
interface StoredBlob {
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
