import { create, toBinary } from "@bufbuild/protobuf";
import {
  ColumnMetadataSchema,
  FileDescriptorSchema,
  type Schema,
} from "../../../../gen/lance/format/data_file_pb.ts";
import type { Field } from "../../../../gen/lance/format/file_pb.ts";
import { binaryPage, type Page, type Text, VALUES_ENCODING, zippedPage } from "./text-pages.ts";

/*
 * A data file consists, in this order, of the pages of its columns; its global buffers, the first of which describes
 * the file; the metadata of each column; the positions and sizes of the metadata; the positions and sizes of the global
 * buffers; and a footer of 40 bytes. Pages and buffers begin at multiples of 64 bytes. All numbers are little endian,
 * and all positions are relative to the start of the file.
 */

/** A column of texts. */
export interface TextColumn {
  /** The field in the table's schema. */
  readonly field: Field;
  readonly texts: readonly Text[];
}

/** Versions of the data file format that are implemented here. */
export type TextFileVersion = "2.0" | "2.1" | "2.2";

interface Version {
  /** Version as in the footer of data files. */
  readonly footer: readonly [major: number, minor: number];
  readonly page: (texts: readonly Text[], nullable: boolean) => Page;
}

const VERSIONS: Readonly<Record<TextFileVersion, Version>> = {
  // Version 2.0 keeps the number that it had before its release.
  "2.0": { footer: [0, 3], page: binaryPage },
  "2.1": { footer: [2, 1], page: zippedPage },
  "2.2": { footer: [2, 2], page: zippedPage },
};

const ALIGNMENT = 64;
const PADDING = Buffer.alloc(ALIGNMENT);

/** Maximum number of rows of a page, so that a reader does not need to load a whole column. */
const PAGE_ROWS = 32_768;

/** Whether files of a format version can be written here. */
export function isTextFileVersion(version: string): version is TextFileVersion {
  return Object.hasOwn(VERSIONS, version);
}

/** Encodes columns of texts, all with the same number of rows, as a data file. */
export function encodeTextFile(
  columns: readonly TextColumn[],
  rows: number,
  version: TextFileVersion,
): Uint8Array {
  const { footer, page } = VERSIONS[version];
  const file = createFileWriter();
  const metadata = columns.map(({ field, texts }) => {
    const pages = runs(rows).map(([start, end]) => {
      const run = texts.length <= PAGE_ROWS ? texts : texts.slice(start, end);
      const { buffers, encoding } = page(run, field.nullable);
      const bufferOffsets = buffers.map((buffer) => BigInt(file.addAligned(buffer)));
      const bufferSizes = buffers.map((buffer) => BigInt(buffer.byteLength));
      const length = BigInt(end - start);
      return { bufferOffsets, bufferSizes, length, encoding, priority: BigInt(start) };
    });
    return toBinary(ColumnMetadataSchema, create(ColumnMetadataSchema, { encoding: VALUES_ENCODING, pages }));
  });
  const fields = columns.map(({ field }) => field);
  return finishFile(file, { schema: { fields }, rows, columns: metadata, footer });
}

/** Encodes a file without rows, such as the engine writes for an index of nothing, in the format 2.1. */
export function encodeEmptyFile(schema: FileSchema, buffers: readonly Uint8Array[] = []): Uint8Array {
  const file = createFileWriter();
  const places = buffers.map((buffer) => [file.add(buffer), buffer.byteLength] as const);
  const column = toBinary(ColumnMetadataSchema, create(ColumnMetadataSchema, { encoding: VALUES_ENCODING }));
  const columns = schema.fields.map(() => column);
  return finishFile(file, { schema, rows: 0, columns, buffers: places, footer: VERSIONS["2.1"].footer });
}

/** The columns of a file, with metadata as bytes of UTF-8. */
export type FileSchema = Pick<Schema, "fields"> & Partial<Pick<Schema, "metadata">>;

interface FileEnd {
  readonly schema: FileSchema;
  readonly rows: number;
  /** Metadata of each column. */
  readonly columns: readonly Uint8Array[];
  /** Positions and sizes of the global buffers after the description. Default: none. */
  readonly buffers?: readonly (readonly [at: number, size: number])[];
  readonly footer: readonly [major: number, minor: number];
}

/** Adds everything that follows the pages. */
function finishFile(file: FileWriter, { schema, rows, columns, buffers = [], footer }: FileEnd): Uint8Array {
  const description = toBinary(
    FileDescriptorSchema,
    create(FileDescriptorSchema, { schema, length: BigInt(rows) }),
  );
  const descriptionAt = file.addAligned(description);
  const columnPlaces = columns.map((bytes) => [file.add(bytes), bytes.byteLength]);
  const columnTableAt = file.add(numbers64(columnPlaces.flat()));
  const bufferTableAt = file.add(numbers64([descriptionAt, description.byteLength, ...buffers.flat()]));
  file.add(numbers64([columnPlaces[0]?.[0] ?? columnTableAt, columnTableAt, bufferTableAt]));
  const end = Buffer.alloc(16);
  end.writeUInt32LE(1 + buffers.length, 0);
  end.writeUInt32LE(columns.length, 4);
  end.writeUInt16LE(footer[0], 8);
  end.writeUInt16LE(footer[1], 10);
  end.write("LANC", 12, "latin1");
  file.add(end);
  return file.finish();
}

function runs(rows: number): (readonly [start: number, end: number])[] {
  const count = Math.ceil(rows / PAGE_ROWS);
  return Array.from({ length: count }, (_, i) => [i * PAGE_ROWS, Math.min(rows, (i + 1) * PAGE_ROWS)]);
}

function numbers64(numbers: readonly number[]): Uint8Array {
  return new Uint8Array(BigUint64Array.from(numbers, BigInt).buffer);
}

type FileWriter = ReturnType<typeof createFileWriter>;

function createFileWriter() {
  const parts: Uint8Array[] = [];
  let at = 0;
  function add(bytes: Uint8Array): number {
    const start = at;
    parts.push(bytes);
    at += bytes.byteLength;
    return start;
  }
  return {
    /** Returns the position of the bytes. */
    add,
    addAligned(bytes: Uint8Array): number {
      const missing = (ALIGNMENT - (at % ALIGNMENT)) % ALIGNMENT;
      if (missing > 0) add(PADDING.subarray(0, missing));
      return add(bytes);
    },
    finish: (): Uint8Array => Buffer.concat(parts),
  };
}

/** Compares two versions of the data format, such as 2.1. */
export function compareFormats(a: string, b: string): number {
  const [one, other] = [a, b].map((version) => version.split(".").map(Number));
  return (one?.[0] ?? 0) - (other?.[0] ?? 0) || (one?.[1] ?? 0) - (other?.[1] ?? 0);
}
