import { isDeepStrictEqual } from "node:util";
import { LanceError } from "../../namespace/errors.ts";
import { bitWidth } from "../bit-width.ts";
import { bytesInViews, VIEW_BYTES } from "../ipc/arrays.ts";
import { type BatchCursor, createBatchCursor, type LayoutSize } from "../ipc/batch-cursor.ts";
import { type FlatTable, readInt64, readTable, rootTable } from "../ipc/flatbuffer.ts";
import { MAX_UPLOAD_BUFFERS, type MessageHead, malformed, parseMessageHead } from "../ipc/message.ts";
import type { ArrowField, ArrowSchema } from "../schema.ts";
import { createDictionaryTexts, type DictionaryTexts, hasSizes, sizesOf } from "./dictionary-texts.ts";

/** Checks the messages of an upload and counts their contents. */
export interface BodyCheck {
  readonly schema: ArrowSchema;
  /** Rows of the batches so far. */
  readonly rows: number;
  /** Unpacked size of the buffers so far, in bytes. */
  readonly unpackedBytes: number;
  /** Memory that the engine needs for them so far, in bytes. */
  readonly neededBytes: number;
  /** Size of the texts to which indices of dictionaries refer so far, in bytes. */
  readonly textBytes: number;
  /**
   * Checks a dictionary or a record batch, and completes its metadata in place as {@link checkLayout} does.
   *
   * @param position start of the message, for the text of an error
   * @param headBytes size of its prefix and metadata; the engine reads values at their given positions
   * @throws LanceError InvalidInput; PayloadTooLarge if the buffers unpack to more than the limit.
   */
  add(head: MessageHead, metadata: Uint8Array, body: Uint8Array, position: number, headBytes: number): void;
}

/**
 * Creates the check of an upload. Its buffers may unpack to `maxBytes` together, and it may have as many rows: rows
 * of nulls only take no bytes in transfer, but cost work in every later query.
 *
 * @throws LanceError InvalidInput, if two fields of different types share a dictionary.
 */
export function createBodyCheck(schema: ArrowSchema, maxBytes: number): BodyCheck {
  const dictionaries = new Map<bigint, ArrowField>();
  collectDictionaries(schema.fields, dictionaries);
  let [rows, unpacked, needed, textBytes] = [0, 0, 0, 0];
  const texts = createDictionaryTexts();
  return {
    schema,
    get rows() {
      return rows;
    },
    get unpackedBytes() {
      return unpacked;
    },
    get neededBytes() {
      return needed;
    },
    get textBytes() {
      return textBytes;
    },
    add(head, metadata, body, position, headBytes) {
      if (headBytes % 8 !== 0 && body.byteLength > 0) {
        throw malformed(position, "the body of a message is not aligned to eight bytes");
      }
      const isDictionary = head.kind === "dictionary";
      const values = dictionaries.get(head.dictionaryId ?? -1n);
      const fields = isDictionary ? values && [values] : schema.fields;
      const find = () => {
        const message = readTable(rootTable(metadata), 2);
        return isDictionary ? message && readTable(message, 1) : message;
      };
      const batch = find();
      if (batch === undefined || fields === undefined)
        throw malformed(position, "no field has this dictionary");
      try {
        let size = checkLayout(fields, batch, body, texts);
        if (size.isCompleted) {
          size = checkLayout(fields, unchanged(find(), head, metadata, position), body, texts);
          if (size.isCompleted) throw new RangeError("its metadata shares bytes");
        }
        unpacked += size.unpackedBytes;
        needed += size.neededBytes;
        textBytes += size.textBytes;
        const sizes = isDictionary ? textsIn(values as ArrowField, batch, body) : undefined;
        if (sizes !== undefined) texts.add(head, sizes);
      } catch (error) {
        throw malformed(position, error instanceof RangeError ? error.message : String(error));
      }
      if (unpacked > maxBytes) {
        throw new LanceError("PayloadTooLarge", `the body decompresses to more than ${maxBytes} bytes`);
      }
      rows += head.rows;
      if (rows > maxBytes) throw new LanceError("PayloadTooLarge", `the body has more than ${maxBytes} rows`);
    },
  };
}

/**
 * Returns the table of a batch whose buffers have got other positions in place.
 *
 * @throws RangeError, if that changed something else, too, because parts of the metadata share bytes.
 */
function unchanged(
  batch: FlatTable | undefined,
  head: MessageHead,
  metadata: Uint8Array,
  position: number,
): FlatTable {
  const now = parseMessageHead(metadata, position, MAX_UPLOAD_BUFFERS);
  if (batch === undefined || !isDeepStrictEqual(now, head)) throw new RangeError("its metadata shares bytes");
  return batch;
}

function collectDictionaries(fields: readonly ArrowField[], found: Map<bigint, ArrowField>): void {
  for (const field of fields) {
    if (field.dictionary !== undefined) {
      const { id } = field.dictionary;
      const known = found.get(id);
      // The engine gives all of them the values of the first.
      if (
        known !== undefined &&
        !isDeepStrictEqual([known.type, known.children], [field.type, field.children])
      ) {
        throw malformed(0, `fields of different types have the dictionary ${id}`);
      }
      found.set(id, { ...field, dictionary: undefined });
    }
    collectDictionaries(field.children, found);
  }
}

/**
 * Memory of a value in lists in the engine beside its own bytes, which a short value does not have: to which list it belongs, and whether it is
 * null. 2.5 MB of booleans in lists take 200 MB.
 */
const LIST_VALUE_BYTES = 8;

/** Memory of a value in a list of fixed size. */
const FIXED_LIST_VALUE_BYTES = 1;

/**
 * Checks that the buffers of a record batch are large enough for the lengths that its arrays declare.
 *
 * The engine trusts these sizes. A wrong one, above all a wrong unpacked size of a compressed buffer, makes it
 * allocate so much that the process ends.
 *
 * apache-arrow for JavaScript writes booleans that are all null without a buffer of values, which the engine refuses. They get the buffer of their
 * validity, which is as large, by a change of the batch's metadata in place.
 *
 * @param batch the table of the record batch
 * @param body the message's body
 * @param texts the sizes of the texts in dictionaries
 * @throws RangeError, for sizes that do not fit together.
 */
export function checkLayout(
  fields: readonly ArrowField[],
  batch: FlatTable,
  body: Uint8Array,
  texts: DictionaryTexts,
): LayoutSize {
  const cursor = createBatchCursor(batch, body, texts);
  const rows = Number(readInt64(batch, 0));
  for (const field of fields) checkField(field, rows, cursor, 0);
  return cursor.finish();
}

/**
 * Returns the sizes of the texts in a dictionary that has passed {@link checkLayout}; undefined for one of other values.
 *
 * @throws RangeError
 */
function textsIn({ type }: ArrowField, batch: FlatTable, body: Uint8Array): number[] | undefined {
  if (!hasSizes(type.name)) return undefined;
  const cursor = createBatchCursor(batch, body, undefined);
  const { length } = cursor.node();
  cursor.buffer();
  cursor.buffer();
  return sizesOf(type.name, cursor.contents, length);
}

/**
 * Checks a field. Numbers here are lengths below 2^53. Their products may be inexact, but are far beyond any buffer then.
 *
 * @param least memory of a value in the engine, in bytes, if it has fewer of its own
 */
function checkField(field: ArrowField, expected: number, cursor: BatchCursor, least: number): void {
  const before = cursor.unpackedBytes;
  const { length, nulls } = cursor.node();
  if (length < expected) throw new RangeError(`column ${JSON.stringify(field.name)} has too few values`);
  const need = (bytes: number) => {
    const size = cursor.buffer();
    if (length > 0 && size < bytes) {
      throw new RangeError(`column ${JSON.stringify(field.name)} has too small a buffer`);
    }
    return size;
  };
  // The engine rejects a partial offset at the end.
  const needOffsets = (isLarge: boolean) => {
    const width = isLarge ? 8 : 4;
    if (need((length + 1) * width) % width !== 0) {
      throw new RangeError(`column ${JSON.stringify(field.name)} has a part of an offset`);
    }
  };
  const type = field.dictionary?.index ?? field.type;
  if (type.name === "null") {
    if (nulls !== length)
      throw new RangeError(`column ${JSON.stringify(field.name)} has values that are no nulls`);
    cursor.free(length, least);
    return;
  }
  const countValues = () => cursor.need(length * least - (cursor.unpackedBytes - before));
  need(nulls > 0 ? Math.ceil(length / 8) : 0);
  const validity = nulls > 0 && type.name.endsWith("_view") ? cursor.contents() : undefined;
  const width = bitWidth(type);
  if (width !== undefined) {
    if (width === 0) cursor.free(length, least);
    if (type.name === "bool" && nulls === length && length > 0) cursor.repeat();
    need(Math.ceil((length * width) / 8));
    if (length > 0) cursor.refer(field, length);
    countValues();
    return;
  }
  switch (type.name) {
    case "binary":
    case "utf8":
    case "large_binary":
    case "large_utf8":
      needOffsets(type.name.startsWith("large"));
      need(0);
      countValues();
      return;
    case "binary_view":
    case "utf8_view": {
      need(length * VIEW_BYTES);
      const bytes = length > 0 ? bytesInViews(cursor.contents(), length, validity) : 0;
      const start = cursor.unpackedBytes;
      for (let left = cursor.variadic(); left > 0; left--) need(0);
      cursor.expand(bytes - (cursor.unpackedBytes - start));
      countValues();
      return;
    }
    case "list":
    case "map":
    case "large_list":
      needOffsets(type.name === "large_list");
      checkChildren(field, 0, cursor, LIST_VALUE_BYTES);
      return;
    case "fixed_size_list":
      if (type.size === 0) cursor.free(length, least);
      cursor.need(length * least);
      checkChildren(field, length * type.size, cursor, FIXED_LIST_VALUE_BYTES);
      return;
    case "struct":
      if (field.children.length === 0) cursor.free(length, least);
      checkChildren(field, length, cursor, least);
      return;
  }
}

function checkChildren(field: ArrowField, length: number, cursor: BatchCursor, least: number): void {
  for (const child of field.children) checkField(child, length, cursor, least);
}
