import { type ArrowSchema, decodeSchema } from "../schema.ts";
import { createByteReader } from "./byte-reader.ts";
import { asDelta, dictionaryLength, type Shift, shiftIndices } from "./delta-dictionary.ts";
import { isIpcFile } from "./ipc-forms.ts";
import {
  type Block,
  CONTINUATION,
  FILE_MAGIC,
  fileTail,
  goesOn,
  MAX_METADATA_BYTES,
  type MessageHead,
  malformed,
  parseMessageHead,
} from "./message.ts";
import { END_OF_STREAM } from "./stream.ts";

const FILE_HEAD = Buffer.concat([FILE_MAGIC, new Uint8Array(2)]);

/** Size of a body, in bytes, below which copying costs less than sending it separately. */
const SMALL_BODY_BYTES = 64 * 1024;

/**
 * Converts an Arrow IPC stream, split anywhere, to an IPC file on its way.
 *
 * Messages pass unchanged, with backpressure. A file cannot replace a dictionary, so the conversion omits a repeated
 * dictionary and appends a different one to the previous one; the indices of later batches move. An input that
 * already is a file passes unchanged.
 *
 * @throws LanceError InvalidInput for a malformed stream; Unsupported if a dictionary changes and the indices cannot
 *   move.
 */
export async function* toIpcFile(chunks: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  await using reader = createByteReader(chunks);
  const start = await reader.peek(FILE_MAGIC.byteLength);
  if (FILE_MAGIC.every((byte, i) => start[i] === byte)) {
    yield* reader.rest();
    return;
  }
  let begun: Uint8Array = FILE_HEAD;
  let position = FILE_HEAD.byteLength;
  let schema: Uint8Array | undefined;
  const blocks = { dictionary: [] as Block[], batch: [] as Block[] };
  const dictionaries = createFileDictionaries();

  for (;;) {
    const offset = position - FILE_HEAD.byteLength;
    const message = await readMetadata(reader, offset);
    if (message === undefined) break;
    const { metadata } = message;
    let { framed } = message;
    const head = parseMessageHead(metadata, offset);
    const isDictionary = head.kind === "dictionary";
    const moves = head.kind === "batch" && schema !== undefined && dictionaries.moved;
    if (isDictionary || moves || head.bodyLength <= SMALL_BODY_BYTES) {
      const body = await exactly(reader.take(head.bodyLength), head.bodyLength, offset);
      const added = isDictionary ? dictionaries.add(head, framed, metadata, body) : framed;
      if (added === undefined) continue;
      framed = added;
      const whole = Buffer.concat([begun, framed, body]);
      if (moves) dictionaries.move(schema as Uint8Array, metadata, whole.subarray(-head.bodyLength));
      yield whole;
    } else {
      yield Buffer.concat([begun, framed]);
      let left = head.bodyLength;
      for await (const chunk of reader.pass(left)) {
        left -= chunk.byteLength;
        yield chunk;
      }
      if (left > 0) throw malformed(offset, "the stream ends in the middle of a message");
    }
    begun = new Uint8Array();
    const block = { offset: position, metadataLength: framed.byteLength, bodyLength: head.bodyLength };
    if (head.kind === "schema") schema = metadata;
    else blocks[head.kind].push(block);
    position += block.metadataLength + block.bodyLength;
  }
  if (schema === undefined) throw malformed(0, "the stream has no schema");
  // The source may still fail, and would take a reader that stops here for gone.
  for await (const _ of reader.rest());
  yield fileTail(schema, blocks.dictionary, blocks.batch);
}

interface Reader {
  take(length: number): Promise<Uint8Array>;
}

/** Reads the next message's prefix and metadata; returns undefined at the end of the stream. */
export async function readMetadata(
  reader: Reader,
  offset: number,
): Promise<{ framed: Uint8Array; metadata: Uint8Array } | undefined> {
  let prefix = Buffer.from(await reader.take(4));
  if (prefix.byteLength === 0) return undefined;
  if (prefix.byteLength === 4 && prefix.readUInt32LE(0) === CONTINUATION) {
    prefix = Buffer.concat([prefix, await reader.take(4)]);
  }
  if (prefix.byteLength % 4 !== 0) throw malformed(offset, "the stream ends in the middle of a message");
  const length = prefix.readUInt32LE(prefix.byteLength - 4);
  if (length === 0) return undefined;
  if (length > MAX_METADATA_BYTES)
    throw malformed(offset, `the metadata of a message would be ${length} bytes long`);
  // A copy: the schema is needed to the end, when its chunk may be gone.
  const framed = Buffer.concat([prefix, await exactly(reader.take(length), length, offset)]);
  return { framed, metadata: framed.subarray(prefix.byteLength) };
}

async function exactly(bytes: Promise<Uint8Array>, length: number, offset: number): Promise<Uint8Array> {
  const taken = await bytes;
  if (taken.byteLength < length) throw malformed(offset, "the stream ends in the middle of a message");
  return taken;
}

/** The dictionaries of a file made from a stream. */
interface FileDictionaries {
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
function createFileDictionaries(): FileDictionaries {
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

const HEAD_BYTES = 8;

/** Length of the footer's size and of the magic, at the end of a file. */
const TAIL_BYTES = 4 + FILE_MAGIC.byteLength;

/** Maximum number of bytes between the end of the messages and the footer. */
const MAX_PADDING = 64;

/**
 * Converts an Arrow IPC file, split anywhere, to an IPC stream on its way: the bytes between its magic and its footer
 * are a stream. An input that is not a file passes unchanged.
 *
 * The end of the stream follows the end of the file, so a truncated file does not become a complete stream.
 *
 * @throws LanceError InvalidInput for a malformed file, and for a file without a schema before its batches.
 */
export async function* toIpcStream(chunks: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  await using reader = createByteReader(chunks);
  if (!isIpcFile(await reader.peek(FILE_MAGIC.byteLength))) {
    yield* reader.rest();
    return;
  }
  let position = HEAD_BYTES;
  await reader.take(HEAD_BYTES);
  // Lance's engine pads the magic to more than eight bytes.
  while (isPadding(await reader.peek(HEAD_BYTES))) {
    await reader.take(HEAD_BYTES);
    position += HEAD_BYTES;
  }
  let begun = false;
  for (;;) {
    const message = await readMetadata(reader, position);
    if (message === undefined) break;
    const { kind, bodyLength } = parseMessageHead(message.metadata, position);
    if (!begun && kind !== "schema") throw malformed(position, "the file has no schema before its batches");
    begun = true;
    yield message.framed;
    let left = bodyLength;
    for await (const piece of reader.pass(bodyLength)) {
      left -= piece.byteLength;
      yield piece;
    }
    if (left > 0) throw malformed(position, "the file ends in the middle of a message");
    position += message.framed.byteLength + bodyLength;
  }
  if (!begun) throw malformed(position, "the file has no schema");
  let tail = Buffer.alloc(0);
  let restBytes = 0;
  for await (const piece of reader.rest()) {
    tail = Buffer.concat([tail, piece]).subarray(-TAIL_BYTES);
    restBytes += piece.byteLength;
  }
  if (tail.byteLength < TAIL_BYTES || !tail.subarray(4).equals(FILE_MAGIC))
    throw malformed(position, "the file ends in the middle of its footer");
  // Rows of a second file would be lost.
  if (restBytes - tail.readInt32LE(0) - TAIL_BYTES > MAX_PADDING) throw goesOn(position);
  yield END_OF_STREAM;
}

function isPadding(bytes: Uint8Array): boolean {
  return bytes.byteLength === HEAD_BYTES && bytes.every((byte) => byte === 0);
}
