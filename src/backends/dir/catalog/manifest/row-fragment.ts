import { randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import type { Field } from "../../../../gen/lance/format/file_pb.ts";
import {
  type DataFragment,
  DataFragmentSchema,
  type Manifest,
} from "../../../../gen/lance/format/table_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { takesStagedRows } from "../../format/changes/staged-rows.ts";
import {
  compareFormats,
  encodeTextFile,
  isTextFileVersion,
  type TextFileVersion,
} from "../../format/files/text-file.ts";
import { COLUMNS, type StoredRow } from "../state/rows/stored-row.ts";

/** Format of rows in a manifest table. */
export interface RowFormat {
  readonly version: string;
  /** Fields of {@link COLUMNS}, in that order. */
  readonly fields: readonly Field[];
  /** Other columns of the table. */
  readonly otherColumns: readonly Field[];
}

/**
 * Determines the format of rows for a manifest table.
 *
 * Writes omit columns that are unknown here, which are null in the new rows.
 *
 * @throws LanceError Unsupported if the table requires an unknown feature of its writers
 */
export function rowFormatOf(manifest: Manifest): RowFormat {
  const version = manifest.dataFormat?.version ?? "";
  const columns = manifest.fields.filter(({ parentId }) => parentId === -1);
  const fields = Object.keys(COLUMNS).map((name) => columns.find((field) => field.name === name));
  const otherColumns = columns.filter((field) => !fields.includes(field));
  if (!takesStagedRows(manifest) || !(isTextFileVersion(version) || isNewerFormat(version))) {
    throw cannotWrite(`its features are ${manifest.writerFeatureFlags}, its data format is ${version}`);
  }
  const needed = otherColumns.find(({ nullable }) => !nullable);
  if (needed !== undefined) throw cannotWrite(`its column ${needed.name} may not be empty`);
  if (!fields.every((field) => field?.logicalType === "string")) {
    throw cannotWrite("it has not the columns of a catalog");
  }
  return { version, fields: fields as Field[], otherColumns };
}

/** Whether a data format is newer than those that are written here; the engine may know it. */
function isNewerFormat(version: string): boolean {
  return /^\d{1,4}\.\d{1,4}$/.test(version) && compareFormats(version, "2.2") > 0;
}

function cannotWrite(why: string): LanceError {
  return new LanceError("Unsupported", `the catalog cannot be written by this version: ${why}`);
}

/** Returns the name of a plain fragment's file, which is unique. */
export function fileNameOf({ files }: DataFragment): string {
  return files[0]?.path ?? "";
}

/** Encodes a data file of some rows, and describes its fragment, which has no id yet. */
export function encodeFragment(
  rows: readonly StoredRow[],
  { version, fields }: RowFormat & { readonly version: TextFileVersion },
): { readonly name: string; readonly bytes: Uint8Array; readonly fragment: DataFragment } {
  const values = Object.values(COLUMNS);
  const columns = fields.map((field, i) => ({
    field,
    texts: rows.map(values[i] as (row: StoredRow) => string | undefined),
  }));
  const bytes = encodeTextFile(columns, rows.length, version);
  const name = `${randomUUID()}.lance`;
  const [major, minor] = version.split(".").map(Number);
  const file = {
    path: name,
    fields: fields.map(({ id }) => id),
    columnIndices: fields.map((_, i) => i),
    fileMajorVersion: major as number,
    fileMinorVersion: minor as number,
    fileSizeBytes: BigInt(bytes.byteLength),
  };
  const fragment = create(DataFragmentSchema, { files: [file], physicalRows: BigInt(rows.length) });
  return { name, bytes, fragment };
}

/** Whether a rewrite of a fragment's rows loses nothing: it has only known columns, and no other unknown parts. */
export function isPlainFragment({ files, $unknown = [] }: DataFragment, { fields }: RowFormat): boolean {
  const [file] = files;
  if (file === undefined || files.length > 1 || $unknown.length > 0 || file.$unknown?.length) return false;
  return file.fields.every((id) => fields.some((field) => field.id === id));
}
