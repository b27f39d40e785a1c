import { create, type DescMessage, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import {
  ArrayEncodingSchema,
  ColumnEncodingSchema,
  type Encoding,
  EncodingSchema,
  PageLayoutSchema,
  RepDefLayer,
} from "../../../../gen/lance/format/data_file_pb.ts";

/** A page of a data file: some rows of a column. */
export interface Page {
  readonly buffers: readonly Uint8Array[];
  readonly encoding: Encoding;
}

/** A text; null or undefined if it is missing. */
export type Text = string | null | undefined;

const { REPDEF_ALL_VALID_ITEM, REPDEF_NULLABLE_ITEM } = RepDefLayer;

/** Encoding of a column as a whole, which only refers to its pages. */
export const VALUES_ENCODING = direct(
  "lance.encodings.ColumnEncoding",
  ColumnEncodingSchema,
  create(ColumnEncodingSchema, { columnEncoding: { case: "values", value: {} } }),
);

/**
 * Lays out texts as in version 2.0: the ends of all texts, as 64-bit numbers, and then their bytes. The end of a
 * missing text is that of the previous text plus more than any end can be.
 */
export function binaryPage(texts: readonly Text[]): Page {
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
export function zippedPage(texts: readonly Text[], nullable: boolean): Page {
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
