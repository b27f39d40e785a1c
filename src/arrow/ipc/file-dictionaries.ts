import { type ArrowSchema, decodeSchema } from "../schema.ts";
import { asDelta, dictionaryLength, type Shift, shiftIndices } from "./delta-dictionary.ts";
import { type MessageHead, malformed } from "./message.ts";

/** The dictionaries of a file made from a stream. */
export interface FileDictionaries {
  /** Whether indices must move, because a dictionary was replaced. */
  readonly moved: boolean;
  /**
   * Adds the next dictionary message of the stream.
   *
   * @returns the metadata for the file, with its prefix; undefined if the file has these values already.
   */
  add(head: MessageHead, framed: Uint8Array, metadata: Uint8Array, body: Uint8Array): Uint8Array | undefined;
  /**
   * Moves the indices of a batch, in place.
   *
   * @throws LanceError Unsupported
   */
  move(schemaMetadata: Uint8Array, metadata: Uint8Array, body: Buffer): void;
}

interface Known {
  /** The added messages, and the positions of their values. */
  readonly messages: { readonly whole: Buffer; readonly at: number }[];
  total: number;
  current: number;
}

/** Creates the dictionaries of an empty file. */
export function createFileDictionaries(): FileDictionaries {
  const known = new Map<bigint, Known>();
  let schema: ArrowSchema | undefined;
  return {
    get moved() {
      return [...known.values()].some(({ current }) => current > 0);
    },
    add(head, framed, metadata, body) {
      const { dictionaryId: id = -1n, isDelta, version, bodyLength } = head;
      const whole = Buffer.concat([framed, body]);
      const before = known.get(id);
      const length = countValues(metadata);
      if (before === undefined) {
        known.set(id, { messages: [{ whole, at: 0 }], total: length, current: 0 });
        return framed;
      }
      if (isDelta) {
        // A delta adds to the dictionary in use, which must be the last one.
        if (before.messages.at(-1)?.at !== before.current)
          throw malformed(0, "a dictionary is added to twice");
        before.total += length;
        return framed;
      }
      const same = before.messages.find((message) => Buffer.compare(message.whole, whole) === 0);
      if (same !== undefined) {
        before.current = same.at;
        return undefined;
      }
      before.current = before.total;
      before.total += length;
      before.messages.push({ whole, at: before.current });
      return asDelta(metadata, id, version, bodyLength);
    },
    move(schemaMetadata, metadata, body) {
      schema ??= decodeSchema(schemaMetadata);
      const shifts = new Map<bigint, Shift>();
      for (const [id, { current, total }] of known) shifts.set(id, { by: current, total });
      try {
        shiftIndices(schema.fields, metadata, body, shifts);
      } catch (error) {
        throw error instanceof RangeError ? malformed(0, error.message) : error;
      }
    },
  };
}

function countValues(metadata: Uint8Array): number {
  try {
    return dictionaryLength(metadata);
  } catch (error) {
    throw error instanceof RangeError ? malformed(0, error.message) : error;
  }
}
