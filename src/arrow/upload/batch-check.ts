import { bitWidth } from "../bit-width.ts";
import { type BatchCursor, createBatchCursor, type LayoutSize } from "../ipc/batch-cursor.ts";
import { type FlatTable, readInt64 } from "../ipc/flatbuffer.ts";
import type { ArrowField } from "../schema.ts";
import { bytesInViews, VIEW_BYTES } from "../validity.ts";
import { type DictionaryTexts, hasSizes, sizesOf } from "./dictionary-texts.ts";

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
export function textsIn({ type }: ArrowField, batch: FlatTable, body: Uint8Array): number[] | undefined {
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
