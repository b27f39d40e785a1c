import { randomBytes } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { Field, makeData, RecordBatch, Schema, Struct, Table, tableToIPC, Uint32 } from "apache-arrow";
import { createBatchCursor } from "../../../../arrow/ipc/batch-cursor.ts";
import { findFooter, readBlocks, scanIpcFile } from "../../../../arrow/ipc/file-scan.ts";
import { type FlatTable, readTable, rootTable } from "../../../../arrow/ipc/flatbuffer.ts";
import { readPrefix } from "../../../../arrow/ipc/message.ts";
import {
  type DataFragment,
  type DeletionFile,
  DeletionFile_DeletionFileType,
  DeletionFileSchema,
} from "../../../../gen/lance/format/table_pb.ts";
import { ITEMS_PER_STEP, inSlices, type Steps } from "../../../../runtime/pace.ts";
import { type DatasetRef, dataDirectory } from "../dataset.ts";
import { damagedFile } from "./damaged-file.ts";
import { readRoaring } from "./roaring.ts";

const SUFFIXES: Readonly<Record<DeletionFile_DeletionFileType, string>> = {
  [DeletionFile_DeletionFileType.ARROW_ARRAY]: "arrow",
  [DeletionFile_DeletionFileType.BITMAP]: "bin",
};

/** Returns the key of the file that lists the deleted rows of a fragment; undefined if none are deleted. */
export function deletionKey(
  dataset: DatasetRef,
  { id, deletionFile: file }: Pick<DataFragment, "id" | "deletionFile">,
): string | undefined {
  if (file === undefined) return undefined;
  const name = `${id}-${file.readVersion}-${file.id}.${SUFFIXES[file.fileType]}`;
  return `${dataDirectory(dataset)}/_deletions/${name}`;
}

/** Describes a new file of deleted rows that is based on a version; draws its name. */
export function newDeletionFile(readVersion: bigint, deletedRows: number): DeletionFile {
  return create(DeletionFileSchema, {
    fileType: DeletionFile_DeletionFileType.ARROW_ARRAY,
    readVersion,
    id: randomBytes(8).readBigUInt64LE(),
    numDeletedRows: BigInt(deletedRows),
  });
}

const SCHEMA = new Schema([new Field("row_id", new Uint32(), false)]);

/** Encodes the offsets of deleted rows as an Arrow file. */
export function encodeDeletions(offsets: Uint32Array): Uint8Array {
  const column = makeData({ type: new Uint32(), length: offsets.length, nullCount: 0, data: offsets });
  const children = [column];
  const data = makeData({ type: new Struct(SCHEMA.fields), length: offsets.length, nullCount: 0, children });
  return tableToIPC(new Table(SCHEMA, new RecordBatch(SCHEMA, data)), "file");
}

/** Maximum size of a file's unpacked offsets, in bytes: those of a fragment with 16 million deleted rows. */
const MAX_UNPACKED_BYTES = 64 * 1024 * 1024;

/**
 * Reads which rows of a fragment are deleted.
 *
 * @returns a mark for each row of the fragment's files: 1 if it is deleted
 * @throws LanceError DataLoss if the file is missing or damaged
 */
export async function readDeletedRows(
  dataset: DatasetRef,
  fragment: Pick<DataFragment, "id" | "deletionFile" | "physicalRows">,
): Promise<Uint8Array> {
  const marks = new Uint8Array(Number(fragment.physicalRows));
  const key = deletionKey(dataset, fragment);
  if (key === undefined) return marks;
  const bytes = await dataset.store.get(key);
  if (bytes === undefined) throw damagedFile(key, "is missing");
  try {
    const isBitmap = fragment.deletionFile?.fileType === DeletionFile_DeletionFileType.BITMAP;
    await inSlices(isBitmap ? markBitmap(bytes, marks) : markOffsets(await offsetsIn(bytes), marks));
  } catch (cause) {
    throw damagedFile(key, "is not a list of deleted rows", cause);
  }
  return marks;
}

function* markBitmap(bytes: Uint8Array, marks: Uint8Array): Steps<void> {
  const contains = readRoaring(bytes);
  for (let row = 0; row < marks.length; row++) {
    if (row % ITEMS_PER_STEP === 0) yield;
    if (contains(row)) marks[row] = 1;
  }
}

function* markOffsets(batches: readonly DataView[], marks: Uint8Array): Steps<void> {
  for (const batch of batches) {
    for (let at = 0; at < batch.byteLength; at += 4) {
      if (at % ITEMS_PER_STEP === 0) yield;
      const row = batch.getUint32(at, true);
      if (row >= marks.length) throw new RangeError(`there is no row ${row}`);
      marks[row] = 1;
    }
  }
}

/** Returns the offsets of each batch of an Arrow file, whose only column has unsigned numbers of 32 bits. */
async function offsetsIn(bytes: Uint8Array): Promise<DataView[]> {
  const file = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  await scanIpcFile(file, MAX_UNPACKED_BYTES);
  return readBlocks(findFooter(file), 3).map(({ offset, metadataLength, bodyLength }) => {
    const bodyAt = offset + metadataLength;
    const head = rootTable(file.subarray(offset + (readPrefix(file, offset)?.bytes ?? 0), bodyAt));
    // The scan has found it there.
    const cursor = createBatchCursor(
      readTable(head, 2) as FlatTable,
      file.subarray(bodyAt, bodyAt + bodyLength),
      undefined,
    );
    const { length, nulls } = cursor.node();
    // Validity, which says nothing here, precedes the values.
    cursor.buffer();
    if (nulls > 0 || cursor.buffer() < length * 4) throw new RangeError("some offsets are missing");
    const values = cursor.contents();
    return new DataView(values.buffer, values.byteOffset, length * 4);
  });
}
