import { createPace, inSlices } from "../../runtime/pace.ts";
import {
  type ArrowField,
  type ArrowSchema,
  MAX_METADATA_ENTRIES,
  MAX_UPLOAD_TABLES,
  schemaSteps,
} from "../schema.ts";
import { type BodyCheck, createBodyCheck } from "../upload/body-check.ts";
import { STRUCT_BYTES } from "./arrays.ts";
import { type FlatTable, readLength, readTable, readVector, rootTable } from "./flatbuffer.ts";
import {
  BLOCK_BYTES,
  type Block,
  FILE_MAGIC,
  MAX_UPLOAD_BUFFERS,
  type MessageKind,
  malformed,
  parseMessageHead,
  readPrefix,
} from "./message.ts";
import { MAX_FILE_MESSAGES } from "./part-buffer.ts";

/** Contents of a file. */
interface ScannedFile {
  readonly schema: ArrowSchema;
  readonly rows: number;
  /** Memory that the engine needs for it, in bytes. */
  readonly neededBytes: number;
  /** Size of the texts to which indices of dictionaries refer, in bytes. */
  readonly textBytes: number;
}

/**
 * Checks an IPC file by its footer, as the engine reads it; some writers omit the stream's own schema.
 *
 * @throws LanceError InvalidInput, PayloadTooLarge
 */
export async function scanIpcFile(bytes: Buffer, maxBytes: number): Promise<ScannedFile> {
  const footer = findFooter(bytes);
  const find = () => {
    const table = readTable(footer, 1);
    if (table === undefined) throw new RangeError("it is missing");
    return table;
  };
  const schema = await inSlices(schemaSteps(find, MAX_METADATA_ENTRIES));
  const check = createBodyCheck(schema, maxBytes);
  const [dictionaries, batches] = [readBlocks(footer, 2), readBlocks(footer, 3)];
  checkApart(bytes, [...dictionaries, ...batches], footer.view.byteOffset - bytes.byteOffset);
  const pace = createPace();
  for (const [kind, blocks] of [
    ["dictionary", dictionaries],
    ["batch", batches],
  ] as const) {
    for (const block of blocks) {
      checkBlock(bytes, kind, block, check);
      await pace.pauseIfDue();
    }
  }
  return { schema, rows: check.rows, neededBytes: check.neededBytes, textBytes: check.textBytes };
}

function checkBlock(bytes: Buffer, kind: MessageKind, block: Block, check: BodyCheck): void {
  const { offset, metadataLength, bodyLength } = block;
  const prefix = readPrefix(bytes, offset);
  const bodyAt = offset + metadataLength;
  const fits = prefix !== undefined && prefix.bytes + prefix.metadataLength <= metadataLength;
  if (!fits || bodyAt + bodyLength > bytes.byteLength) throw malformed(offset, "a message is cut off");
  const metadata = bytes.subarray(offset + prefix.bytes, bodyAt);
  const head = parseMessageHead(metadata, offset, MAX_UPLOAD_BUFFERS);
  if (head.kind !== kind || head.bodyLength !== bodyLength) {
    throw malformed(offset, "the footer says something else than the message");
  }
  check.add(head, metadata, bytes.subarray(bodyAt, bodyAt + bodyLength), offset, metadataLength);
}

/**
 * Checks that no two messages share bytes, and none with the footer: a small file could repeat rows without end, and a change of a message's
 * metadata would change what has been checked before. Nor may there be messages that the footer lacks, such as those of a
 * file before this one: their rows would be lost.
 */
function checkApart(bytes: Buffer, blocks: Block[], footerAt: number): void {
  blocks.sort((a, b) => a.offset - b.offset);
  let end = FILE_MAGIC.byteLength + 2;
  for (const { offset, metadataLength, bodyLength } of blocks) {
    if (offset < end) throw malformed(offset, "the footer has messages that overlap");
    checkFiller(bytes, end, offset);
    end = offset + metadataLength + bodyLength;
  }
  if (end > footerAt) throw malformed(footerAt, "the footer has messages that overlap it");
  checkFiller(bytes, end, footerAt);
}

/** Maximum number of end markers and words of padding in one place of a file. */
const MAX_FILLERS = 64;

/** Checks that a part of a file outside of its footer's messages has only padding, an end marker or the schema. */
function checkFiller(bytes: Buffer, from: number, to: number): void {
  let position = from;
  for (let fillers = 0; to - position >= 4; ) {
    const prefix = readPrefix(bytes.subarray(0, to), position);
    const end = prefix && position + prefix.bytes + prefix.metadataLength;
    if (prefix === undefined || end === undefined || end > to || ++fillers > MAX_FILLERS)
      throw malformed(position, "there is something else than a message");
    if (prefix.metadataLength > 0) {
      const metadata = bytes.subarray(position + prefix.bytes, end);
      if (parseMessageHead(metadata, position, MAX_UPLOAD_BUFFERS).kind !== "schema")
        throw malformed(position, "the footer lacks a message");
    }
    position = end;
  }
}

/** Whether top-level columns of a checked IPC file may have nulls; the values of a dictionary are not looked at. */
export async function mayHaveNulls(
  file: Buffer,
  { fields }: ArrowSchema,
  columns: readonly string[],
): Promise<boolean> {
  const nodes: number[] = [];
  let node = 0;
  for (const field of fields) {
    if (columns.includes(field.name)) {
      if (field.dictionary !== undefined) return true;
      nodes.push(node);
    }
    node += nodesOf(field);
  }
  const pace = createPace();
  for (const { offset, metadataLength } of readBlocks(findFooter(file), 3)) {
    const metadata = file.subarray(offset + (readPrefix(file, offset)?.bytes ?? 0), offset + metadataLength);
    const batch = readTable(rootTable(metadata), 2);
    const { at } = batch === undefined ? { at: 0 } : readVector(batch, 1, STRUCT_BYTES);
    if (nodes.some((index) => batch?.view.getBigInt64(at + index * STRUCT_BYTES + 8, true) !== 0n))
      return true;
    await pace.pauseIfDue();
  }
  return false;
}

/** Returns the number of arrays of a field in a batch. */
function nodesOf({ children, dictionary }: ArrowField): number {
  return dictionary === undefined ? children.reduce((sum, child) => sum + nodesOf(child), 1) : 1;
}

/** Returns an IPC file with the schema of another one and without rows. */
export function emptyIpcFile(file: Buffer): Buffer {
  const { byteOffset, byteLength } = findFooter(file).view;
  const tail = Buffer.from(file.subarray(byteOffset - file.byteOffset));
  const footer = rootTable(tail.subarray(0, byteLength));
  for (const index of [2, 3]) {
    const { at } = readVector(footer, index);
    if (at > 0) footer.view.setUint32(at - 4, 0, true);
  }
  return Buffer.concat([FILE_MAGIC, new Uint8Array(2), tail]);
}

/** Returns the footer of an IPC file. @throws LanceError InvalidInput */
export function findFooter(bytes: Buffer): FlatTable {
  const end = bytes.byteLength - FILE_MAGIC.byteLength - 4;
  const whole = end > 0 && bytes.subarray(end + 4).equals(FILE_MAGIC);
  const length = whole ? bytes.readInt32LE(end) : 0;
  if (length <= 0 || length > end) throw malformed(bytes.byteLength, "the file ends without a footer");
  return inFooter(end - length, () => rootTable(bytes.subarray(end - length, end), MAX_UPLOAD_TABLES));
}

/** Returns the positions of the messages in a vector of a footer. @throws LanceError InvalidInput */
export function readBlocks(footer: FlatTable, index: number): Block[] {
  return inFooter(0, () => {
    const { view } = footer;
    const vector = readVector(footer, index, BLOCK_BYTES);
    if (vector.length > MAX_FILE_MESSAGES) throw new RangeError("there are too many record batches");
    return Array.from({ length: vector.length }, (_, i) => {
      const at = vector.at + i * BLOCK_BYTES;
      const metadataLength = view.getInt32(at + 8, true);
      if (metadataLength < 0) throw new RangeError("a block has a negative size");
      return { offset: readLength(view, at), metadataLength, bodyLength: readLength(view, at + 16) };
    });
  });
}

function inFooter<T>(offset: number, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof RangeError) throw malformed(offset, `the footer is broken: ${error.message}`);
    throw error;
  }
}
