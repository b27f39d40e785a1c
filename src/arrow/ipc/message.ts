import { LanceError } from "../../namespace/errors.ts";
import {
  type FlatTable,
  readInt16,
  readInt64,
  readLength,
  readTable,
  readUint8,
  readVector,
  rootTable,
} from "./flatbuffer.ts";

/** Marker before the length of a message since Arrow 0.15. */
export const CONTINUATION = 0xffffffff;

/** Longest metadata of a message, in bytes; a schema of 100,000 columns has about 7 MB. */
export const MAX_METADATA_BYTES = 16 * 1024 * 1024;

/**
 * Maximum number of buffers, and of arrays, in a message of an upload: a schema of an upload has a few for each of its fields. Checking that many
 * takes about 15 ms.
 */
export const MAX_UPLOAD_BUFFERS = 262_144;

/** First and last bytes of an IPC file. */
export const FILE_MAGIC: Uint8Array = Buffer.from("ARROW1");

/** Kinds of messages in a stream of record batches. */
export type MessageKind = "schema" | "dictionary" | "batch";

/** Contents of a message's metadata. */
export interface MessageHead {
  readonly kind: MessageKind;
  /** Format version as in the metadata; 4 is V5. */
  readonly version: number;
  /** Size of the body after the metadata, in bytes. */
  readonly bodyLength: number;
  /** Rows of a batch; 0 for other kinds. */
  readonly rows: number;
  /** Id of a dictionary; undefined for other kinds. */
  readonly dictionaryId: bigint | undefined;
  /** Whether a dictionary adds to the previous one instead of replacing it. */
  readonly isDelta: boolean;
  /** Whether the buffers of its body are compressed. */
  readonly isCompressed: boolean;
}

const KINDS: Readonly<Record<number, MessageKind>> = { 1: "schema", 2: "dictionary", 3: "batch" };

/**
 * Reads the metadata of a message, without its prefix.
 *
 * It checks the positions of the buffers against the body, because the engine trusts them.
 *
 * @param offset start of the message in its stream, for the text of an error
 * @param maxBuffers how many buffers, and how many arrays, it may have. Default: any number.
 * @throws LanceError InvalidInput, for anything but a well-formed little-endian message.
 */
export function parseMessageHead(
  metadata: Uint8Array,
  offset: number,
  maxBuffers: number = Number.POSITIVE_INFINITY,
): MessageHead {
  try {
    const message = rootTable(metadata);
    const kind = KINDS[readUint8(message, 1)];
    const header = readTable(message, 2);
    if (kind === undefined || header === undefined) {
      throw malformed(offset, "it is neither a schema nor a dictionary nor a record batch");
    }
    const bodyLength = toLength(readInt64(message, 3));
    const data = kind === "dictionary" ? readTable(header, 1) : kind === "batch" ? header : undefined;
    if (data !== undefined) checkBuffers(data, bodyLength, maxBuffers);
    return {
      kind,
      version: readInt16(message, 0),
      bodyLength,
      rows: kind === "batch" ? toLength(readInt64(header, 0)) : 0,
      dictionaryId: kind === "dictionary" ? readInt64(header, 0) : undefined,
      isDelta: kind === "dictionary" && readUint8(header, 2) !== 0,
      isCompressed: data !== undefined && readTable(data, 3) !== undefined,
    };
  } catch (error) {
    if (error instanceof RangeError) throw malformed(offset, error.message);
    throw error;
  }
}

/** Returns the table of the schema inside the metadata of a schema message. */
export function schemaTable(metadata: Uint8Array, maxTables?: number): FlatTable {
  const table = readTable(rootTable(metadata, maxTables), 2);
  if (table === undefined) throw malformed(0, "the schema is missing");
  return table;
}

/** Returns the error for bytes that are not an Arrow IPC stream. */
export function malformed(offset: number, reason: string): LanceError {
  return new LanceError(
    "InvalidInput",
    `the body is not a valid Arrow IPC stream: at byte ${offset}, ${reason}`,
  );
}

/** Returns the error for bytes after the end of a stream or a file: what follows would be lost. */
export function goesOn(offset: number): LanceError {
  return new LanceError(
    "InvalidInput",
    `the body goes on after the end of its Arrow data, at byte ${offset}: send all rows in one stream`,
  );
}

/** Returns the error for an empty body. */
export function emptyBody(): LanceError {
  return new LanceError("InvalidInput", "the body is empty; it must be an Arrow IPC stream");
}

/**
 * Reads the lengths before a message; returns undefined while they have not arrived. Metadata of no length ends the
 * stream.
 */
export function readPrefix(
  bytes: Buffer,
  position: number,
): { bytes: number; metadataLength: number } | undefined {
  if (position + 4 > bytes.byteLength) return undefined;
  const first = bytes.readUInt32LE(position);
  if (first !== CONTINUATION) return checkPrefix(4, first, position);
  if (position + 8 > bytes.byteLength) return undefined;
  return checkPrefix(8, bytes.readUInt32LE(position + 4), position);
}

function checkPrefix(bytes: number, metadataLength: number, position: number) {
  if (metadataLength > MAX_METADATA_BYTES) {
    throw malformed(position, `the metadata of a message would be ${metadataLength} bytes long`);
  }
  return { bytes, metadataLength };
}

const BUFFER_BYTES = 16;
const NODE_BYTES = 16;

function checkBuffers(batch: FlatTable, bodyLength: number, most: number): void {
  const { view } = batch;
  const nodes = readVector(batch, 1, NODE_BYTES);
  const buffers = readVector(batch, 2, BUFFER_BYTES);
  if (Math.max(nodes.length, buffers.length) > most)
    throw new RangeError(`a message has more than ${most} buffers`);
  for (let i = 0; i < nodes.length; i++) readLength(view, nodes.at + i * NODE_BYTES);
  for (let i = 0; i < buffers.length; i++) {
    const at = buffers.at + i * BUFFER_BYTES;
    const [start, length] = [readLength(view, at), readLength(view, at + 8)];
    if (start % 8 !== 0) throw new RangeError("a buffer is not aligned to eight bytes");
    if (start + length > bodyLength) throw new RangeError("a buffer ends outside of the message's body");
  }
}

function toLength(value: bigint): number {
  if (value < 0n || value > BigInt(Number.MAX_SAFE_INTEGER)) throw new RangeError(`${value} is no length`);
  return Number(value);
}

/** Position of a message inside an IPC file. */
export interface Block {
  /** Start of the message's prefix, in bytes from the start of the file. */
  readonly offset: number;
  /** Size of prefix and metadata, in bytes. */
  readonly metadataLength: number;
  readonly bodyLength: number;
}

/** Size of a block in a footer, in bytes. */
export const BLOCK_BYTES = 24;

/** The end of the vector of dictionaries and the start of the vector of batches are padded to eight bytes. */
const FIXED_BYTES = 40;

/**
 * Returns the end of an IPC file: the end-of-stream mark, the footer, its length and the magic.
 *
 * The footer must repeat the schema. This code builds it by hand so that it can copy the schema message byte by byte:
 * offsets in a FlatBuffer are relative, so a copied message stays valid anywhere, and unknown types are preserved.
 *
 * @param schemaMetadata the metadata of the schema message, without its prefix
 */
export function fileTail(
  schemaMetadata: Uint8Array,
  dictionaries: readonly Block[],
  batches: readonly Block[],
): Uint8Array {
  const batchesAt = FIXED_BYTES + dictionaries.length * BLOCK_BYTES;
  const schemaAt = batchesAt + 8 + batches.length * BLOCK_BYTES;
  const footerBytes = schemaAt + schemaMetadata.byteLength;
  const tail = Buffer.alloc(8 + footerBytes + 4 + FILE_MAGIC.byteLength);
  tail.writeUInt32LE(0xffffffff, 0);
  const footer = tail.subarray(8, 8 + footerBytes);
  const schemaTableAt = schemaAt + schemaTable(schemaMetadata).at;

  // The root's offset, then the vtable: its size, the table's size, and the positions of four fields.
  footer.writeUInt32LE(16, 0);
  for (const [i, value] of [12, 20, 4, 8, 12, 16].entries()) footer.writeUInt16LE(value, 4 + i * 2);
  // The table: the offset to the vtable, version, schema, dictionaries, batches.
  footer.writeInt32LE(12, 16);
  footer.writeInt16LE(parseMessageHead(schemaMetadata, 0).version, 20);
  footer.writeUInt32LE(schemaTableAt - 24, 24);
  footer.writeUInt32LE(FIXED_BYTES - 4 - 28, 28);
  footer.writeUInt32LE(batchesAt + 4 - 32, 32);
  writeBlocks(footer, FIXED_BYTES, dictionaries);
  writeBlocks(footer, batchesAt + 8, batches);
  footer.set(schemaMetadata, schemaAt);

  tail.writeInt32LE(footerBytes, 8 + footerBytes);
  tail.set(FILE_MAGIC, 8 + footerBytes + 4);
  return tail;
}

function writeBlocks(footer: Buffer, at: number, blocks: readonly Block[]): void {
  footer.writeUInt32LE(blocks.length, at - 4);
  for (const [i, block] of blocks.entries()) {
    footer.writeBigInt64LE(BigInt(block.offset), at + i * BLOCK_BYTES);
    footer.writeInt32LE(block.metadataLength, at + i * BLOCK_BYTES + 8);
    footer.writeBigInt64LE(BigInt(block.bodyLength), at + i * BLOCK_BYTES + 16);
  }
}
