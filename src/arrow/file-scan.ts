import { createBodyCheck } from "./body-check.ts";
import { type FlatTable, readTable, readVector, rootTable } from "./flatbuffer.ts";
import { BLOCK_BYTES, type Block } from "./footer.ts";
import { FILE_MAGIC, malformed, parseMessageHead, readPrefix } from "./message.ts";
import { type ArrowSchema, decodeSchemaTable } from "./schema.ts";

/**
 * Checks an IPC file by its footer, as the engine will read it; some writers leave out the stream's own schema.
 *
 * @throws LanceError InvalidInput, PayloadTooLarge
 */
export function scanIpcFile(bytes: Buffer, maxBytes: number): { schema: ArrowSchema; rows: number } {
  const footer = findFooter(bytes);
  const schema = decodeSchemaTable(() => {
    const table = readTable(footer, 1);
    if (table === undefined) throw new RangeError("it is missing");
    return table;
  });
  const check = createBodyCheck(schema, maxBytes);
  for (const [index, kind] of [
    [2, "dictionary"],
    [3, "batch"],
  ] as const) {
    for (const block of readBlocks(footer, index)) {
      const { offset, metadataLength, bodyLength } = block;
      const prefix = readPrefix(bytes, offset);
      const bodyAt = offset + metadataLength;
      const fits = prefix !== undefined && prefix.bytes + prefix.metadataLength <= metadataLength;
      if (!fits || bodyAt + bodyLength > bytes.byteLength) throw malformed(offset, "a message is cut off");
      const metadata = bytes.subarray(offset + prefix.bytes, bodyAt);
      const head = parseMessageHead(metadata, offset);
      if (head.kind !== kind || head.bodyLength !== bodyLength) {
        throw malformed(offset, "the footer says something else than the message");
      }
      check.add(head, metadata, bytes.subarray(bodyAt, bodyAt + bodyLength), offset);
    }
  }
  return { schema, rows: check.rows };
}

/** The IPC file that has the schema of another one and none of its rows. */
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

function findFooter(bytes: Buffer): FlatTable {
  const end = bytes.byteLength - FILE_MAGIC.byteLength - 4;
  const whole = end > 0 && bytes.subarray(end + 4).equals(FILE_MAGIC);
  const length = whole ? bytes.readInt32LE(end) : 0;
  if (length <= 0 || length > end) throw malformed(bytes.byteLength, "the file ends without a footer");
  try {
    return rootTable(bytes.subarray(end - length, end));
  } catch (error) {
    throw malformed(end - length, error instanceof RangeError ? error.message : String(error));
  }
}

function readBlocks(footer: FlatTable, index: number): Block[] {
  try {
    const vector = readVector(footer, index);
    return Array.from({ length: vector.length }, (_, i) => {
      const at = vector.at + i * BLOCK_BYTES;
      const [offset, metadataLength, bodyLength] = [
        Number(footer.view.getBigInt64(at, true)),
        footer.view.getInt32(at + 8, true),
        Number(footer.view.getBigInt64(at + 16, true)),
      ];
      if (offset < 0 || metadataLength < 0 || bodyLength < 0)
        throw new RangeError("a block has a negative size");
      return { offset, metadataLength, bodyLength };
    });
  } catch (error) {
    throw malformed(
      0,
      error instanceof RangeError ? `the footer is broken: ${error.message}` : String(error),
    );
  }
}
