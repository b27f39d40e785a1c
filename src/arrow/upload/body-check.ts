import { isDeepStrictEqual } from "node:util";
import { LanceError } from "../../namespace/errors.ts";
import { type FlatTable, readTable, rootTable } from "../ipc/flatbuffer.ts";
import { MAX_UPLOAD_BUFFERS, type MessageHead, malformed, parseMessageHead } from "../ipc/message.ts";
import type { ArrowField, ArrowSchema } from "../schema.ts";
import { checkLayout, textsIn } from "./batch-check.ts";
import { createDictionaryTexts } from "./dictionary-texts.ts";

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
