import { create, type DescMessage, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import {
  ArrayEncodingSchema,
  ColumnEncodingSchema,
  ColumnMetadataSchema,
  type Encoding,
  EncodingSchema,
  FileDescriptorSchema,
  PageLayoutSchema,
  RepDefLayer,
  type Schema,
} from "../../../../gen/lance/format/data_file_pb.ts";
import type { Field } from "../../../../gen/lance/format/file_pb.ts";

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

/** A page of a data file: some rows of a column. */
interface Page {
  readonly buffers: readonly Uint8Array[];
  readonly encoding: Encoding;
}

/** A text; null or undefined if it is missing. */
type Text = string | null | undefined;

const { REPDEF_ALL_VALID_ITEM, REPDEF_NULLABLE_ITEM } = RepDefLayer;

/** Encoding of a column as a whole, which only refers to its pages. */
const VALUES_ENCODING = direct(
  "lance.encodings.ColumnEncoding",
  ColumnEncodingSchema,
  create(ColumnEncodingSchema, { columnEncoding: { case: "values", value: {} } }),
);

/**
 * Lays out texts as in version 2.0: the ends of all texts, as 64-bit numbers, and then their bytes. The end of a
 * missing text is that of the previous text plus more than any end can be.
 */
function binaryPage(texts: readonly Text[]): Page {
  const bytes = Buffer.from(texts.map((text) => text ?? "").join(""));
  const ends = new BigUint64Array(texts.length);
  const adjustment = BigInt(bytes.byteLength + 1);
  let end = 0n;
  for (const [i, text] of texts.entries()) {
    if (typeof text === "string") ends[i] = end += BigInt(Buffer.byteLength(text));
    else ends[i] = end + adjustment;
  }
  const value = { indices: notNull(flat(64, 0)), bytes: flat(8, 1), nullAdjustment: adjustment };
  const encoding = create(ArrayEncodingSchema, { arrayEncoding: { case: "binary", value } });
  return {
    buffers: [new Uint8Array(ends.buffer), bytes],
    encoding: direct("lance.encodings.ArrayEncoding", ArrayEncodingSchema, encoding),
  };
}

/**
 * Lays out texts as versions 2.1 and 2.2 do for long ones: each after its length in 32 bits, preceded in a nullable
 * column by a byte that says whether it is missing, and a list of the positions where the texts begin. The layout is
 * also valid for short texts, and does not limit the length of a text.
 */
function zippedPage(texts: readonly Text[], nullable: boolean): Page {
  if (nullable && texts.every((text) => typeof text !== "string")) return EMPTY_PAGE;
  const head = nullable ? 5 : 4;
  const starts: number[] = [0];
  let end = 0;
  for (const text of texts) {
    end += typeof text === "string" ? head + Buffer.byteLength(text) : 1;
    starts.push(end);
  }
  const bytes = Buffer.alloc(end);
  for (const [i, text] of texts.entries()) {
    const [start, stop] = [starts[i] as number, starts[i + 1] as number];
    if (typeof text !== "string") {
      bytes[start] = 1;
      continue;
    }
    bytes.writeUInt32LE(stop - start - head, start + head - 4);
    bytes.write(text, start + head, "utf8");
  }
  const value = {
    bitsDef: nullable ? 1 : 0,
    bitsPerOffset: 32,
    numItems: texts.length,
    numVisibleItems: texts.length,
    valueCompression: variable(32),
    layers: [nullable ? REPDEF_NULLABLE_ITEM : REPDEF_ALL_VALID_ITEM],
  };
  const layout = create(PageLayoutSchema, { layout: { case: "fullZipLayout", value } });
  return { buffers: [bytes, packed(starts)], encoding: layoutEncoding(layout) };
}

/** A page in which all texts are missing has no bytes. */
const EMPTY_PAGE: Page = {
  buffers: [],
  encoding: layoutEncoding(
    create(PageLayoutSchema, {
      layout: { case: "constantLayout", value: { layers: [REPDEF_NULLABLE_ITEM] } },
    }),
  ),
};

/** Packs numbers into the smallest size that holds the last one, which is the largest. */
function packed(numbers: readonly number[]): Uint8Array {
  const largest = numbers.at(-1) ?? 0;
  if (largest < 2 ** 8) return Uint8Array.from(numbers);
  const array = largest < 2 ** 16 ? Uint16Array.from(numbers) : Uint32Array.from(numbers);
  return new Uint8Array(array.buffer);
}

function flat(bitsPerValue: number, bufferIndex: number) {
  const value = { bitsPerValue: BigInt(bitsPerValue), buffer: { bufferIndex } };
  return { arrayEncoding: { case: "flat", value } } as const;
}

function notNull(values: ReturnType<typeof flat>) {
  return {
    arrayEncoding: {
      case: "nullable",
      value: { nullability: { case: "noNulls", value: { values } } },
    },
  } as const;
}

function variable(bitsPerValue: number) {
  const offsets = { compression: { case: "flat", value: { bitsPerValue: BigInt(bitsPerValue) } } } as const;
  return { compression: { case: "variable", value: { offsets } } } as const;
}

function layoutEncoding(layout: MessageShape<typeof PageLayoutSchema>): Encoding {
  return direct("lance.encodings21.PageLayout", PageLayoutSchema, layout);
}

function direct<T extends DescMessage>(name: string, schema: T, message: MessageShape<T>): Encoding {
  const any = create(AnySchema, { typeUrl: `/${name}`, value: toBinary(schema, message) });
  return create(EncodingSchema, {
    location: { case: "direct", value: { encoding: toBinary(AnySchema, any) } },
  });
}
