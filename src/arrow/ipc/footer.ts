import { FILE_MAGIC, parseMessageHead, schemaTable } from "./message.ts";

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
