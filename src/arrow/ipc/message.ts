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
