import { randomBytes } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { Field, makeData, RecordBatch, Schema, Struct, Table, tableToIPC, Uint32 } from "apache-arrow";
import {
  type DataFragment,
  type DeletionFile,
  DeletionFile_DeletionFileType,
  DeletionFileSchema,
} from "../../../../gen/lance/format/table_pb.ts";
import { type DatasetRef, dataDirectory } from "../dataset.ts";

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
