/** First bytes of an LZ4 frame. */
export const MAGIC = 0x184d2204;

/** Largest size of a block, in bytes, by its number in the frame's descriptor. */
const BLOCK_BYTES: readonly (number | undefined)[] = [
  undefined,
  undefined,
  undefined,
  undefined,
  64 * 1024,
  256 * 1024,
  1024 * 1024,
  4 * 1024 * 1024,
];

/** Largest number of bytes to which a byte of a compressed block unpacks. */
const MAX_RATIO = 255;

/** Smallest average size of a frame's blocks, in bytes: a block of zeros that is full has about 270. */
const LEAST_BYTES_PER_BLOCK = 128;

/** By how many bytes the blocks of a frame may exceed its declared size: all except the last are full. */
const MAX_EXCESS_BYTES = 16 * 1024 * 1024;

/** Flags of a frame. */
export const BLOCK_CHECKSUM = 0x10;
export const CONTENT_SIZE = 0x08;
export const CONTENT_CHECKSUM = 0x04;
export const DICTIONARY_ID = 0x01;
/** Flag in the length of a block: the block is stored uncompressed. */
export const STORED = 0x80000000;

/**
 * Checks that an LZ4 frame cannot unpack to much more than its declared size: the engine unpacks the whole frame
 * before it compares. The check counts blocks without unpacking them.
 *
 * @param size declared size of the frame's contents, in bytes
 * @throws RangeError
 */
export function checkLz4Frame({ buffer, byteOffset, byteLength }: Uint8Array, size: number): void {
  const view = new DataView(buffer, byteOffset, byteLength);
  const most = size + MAX_EXCESS_BYTES;
  let [at, unpacked, blocks] = [0, 0, 0];
  // Another frame may follow.
  while (at + 7 <= byteLength && (at === 0 || view.getUint32(at, true) === MAGIC)) {
    if (view.getUint32(at, true) !== MAGIC) throw new RangeError("a compressed buffer is no LZ4 frame");
    const flags = view.getUint8(at + 4);
    const blockBytes = BLOCK_BYTES[(view.getUint8(at + 5) >> 4) & 7];
    if (blockBytes === undefined) throw new RangeError("an LZ4 frame has blocks of an unknown size");
    const checksumBytes = flags & BLOCK_CHECKSUM ? 4 : 0;
    at += 7 + (flags & CONTENT_SIZE ? 8 : 0) + (flags & DICTIONARY_ID ? 4 : 0);
    for (;;) {
      if (at + 4 > byteLength) throw new RangeError("an LZ4 frame is cut off");
      const block = view.getUint32(at, true);
      at += 4;
      if (block === 0) break;
      const length = block % STORED;
      at += length + checksumBytes;
      // A block of a few bytes costs as much to check as any other.
      if (++blocks > 1 + byteLength / LEAST_BYTES_PER_BLOCK)
        throw new RangeError("an LZ4 frame has too many blocks");
      unpacked += Math.min(blockBytes, Math.max(1, length) * MAX_RATIO);
      if (unpacked > most) throw new RangeError("a compressed buffer is larger than it says");
    }
    at += flags & CONTENT_CHECKSUM ? 4 : 0;
  }
  if (at === 0) throw new RangeError("an LZ4 frame is cut off");
}
