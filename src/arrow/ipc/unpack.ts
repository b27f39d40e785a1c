import { zstdDecompressSync } from "node:zlib";

/**
 * Unpacks a compressed buffer; a frame of LZ4 has passed {@link checkLz4Frame}.
 *
 * @throws RangeError, if it does not unpack to the size.
 */
export function unpack(codec: "lz4" | "zstd", packed: Uint8Array, size: number): Uint8Array {
  return codec === "lz4" ? unpackLz4(packed, size) : unpackZstd(packed, size);
}

function unpackZstd(packed: Uint8Array, size: number): Uint8Array {
  let unpacked: Uint8Array;
  try {
    unpacked = zstdDecompressSync(packed, { maxOutputLength: size });
  } catch (cause) {
    throw new RangeError("a compressed buffer cannot be unpacked", { cause });
  }
  if (unpacked.byteLength !== size) throw wrongSize();
  return unpacked;
}

function unpackLz4(frame: Uint8Array, size: number): Uint8Array {
  const view = new DataView(frame.buffer, frame.byteOffset, frame.byteLength);
  const result = new Uint8Array(size);
  let [at, end] = [0, 0];
  while (at + 7 <= frame.byteLength && view.getUint32(at, true) === MAGIC) {
    const flags = view.getUint8(at + 4);
    at += 7 + (flags & CONTENT_SIZE ? 8 : 0) + (flags & DICTIONARY_ID ? 4 : 0);
    for (let block = view.getUint32(at, true); block !== 0; block = view.getUint32(at, true)) {
      const from = at + 4;
      at = from + (block % STORED);
      const piece = frame.subarray(from, at);
      end = block >= STORED ? put(result, end, piece) : unpackBlock(piece, result, end);
      at += flags & BLOCK_CHECKSUM ? 4 : 0;
    }
    at += 4 + (flags & CONTENT_CHECKSUM ? 4 : 0);
  }
  if (end !== size) throw wrongSize();
  return result;
}

/** Unpacks a block behind the bytes that are unpacked already, and returns the new end. */
function unpackBlock(block: Uint8Array, result: Uint8Array, start: number): number {
  let [at, end] = [0, start];
  const byte = () => {
    const value = block[at++];
    if (value === undefined) throw new RangeError("an LZ4 block is cut off");
    return value;
  };
  const length = (first: number) => {
    let sum = first;
    for (let more = first === 15 ? 255 : 0; more === 255; sum += more) more = byte();
    return sum;
  };
  while (at < block.byteLength) {
    const token = byte();
    const literals = length(token >> 4);
    end = put(result, end, block.subarray(at, at + literals));
    at += literals;
    if (at >= block.byteLength) break;
    const distance = byte() + byte() * 256;
    const match = length(token & 15) + 4;
    if (distance === 0 || distance > end || end + match > result.byteLength)
      throw new RangeError("an LZ4 block refers to bytes that it does not have");
    for (const stop = end + match; end < stop; end++) result[end] = result[end - distance] as number;
  }
  return end;
}

function put(result: Uint8Array, end: number, piece: Uint8Array): number {
  if (end + piece.byteLength > result.byteLength) throw wrongSize();
  result.set(piece, end);
  return end + piece.byteLength;
}

function wrongSize(): RangeError {
  return new RangeError("a compressed buffer does not have the size that it says");
}

/** First bytes of an LZ4 frame. */
const MAGIC = 0x184d2204;

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
const BLOCK_CHECKSUM = 0x10;
const CONTENT_SIZE = 0x08;
const CONTENT_CHECKSUM = 0x04;
const DICTIONARY_ID = 0x01;
/** Flag in the length of a block: the block is stored uncompressed. */
const STORED = 0x80000000;

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
