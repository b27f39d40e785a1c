import { asDelta, dictionaryLength, type Shift, shiftIndices } from "./delta-dictionary.ts";
import { type MessageHead, malformed } from "./message.ts";
import { type ArrowSchema, decodeSchema } from "./schema.ts";

/** The dictionaries of a file that is made of a stream. */
export interface FileDictionaries {
  /** Whether indices have to be moved, for a dictionary that was replaced. */
  readonly moved: boolean;
  /**
   * Takes the next dictionary message of the stream.
   *
   * @returns the metadata for the file, with its prefix; undefined when the file has these values already.
   */
  add(head: MessageHead, framed: Uint8Array, metadata: Uint8Array, body: Uint8Array): Uint8Array | undefined;
  /** Moves the indices of a batch in place. @throws LanceError Unsupported */
  move(schemaMetadata: Uint8Array, metadata: Uint8Array, body: Buffer): void;
}

interface Known {
  /** The messages that were added, and where their values begin. */
  readonly messages: { readonly whole: Buffer; readonly at: number }[];
  total: number;
  current: number;
}

/** Begins a file without dictionaries. */
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
        // It adds to the dictionary in use, which has to be the last one for that.
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
