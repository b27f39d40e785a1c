import { zstdDecompressSync } from "node:zlib";
import { BLOCK_CHECKSUM, CONTENT_CHECKSUM, CONTENT_SIZE, DICTIONARY_ID, MAGIC, STORED } from "./lz4.ts";

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
