import { PYARROW_STREAMS } from "../fixtures/arrow/pyarrow-streams.ts";

/** The end marker of an Arrow IPC stream. */
const END = Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0);

const STRUCT = 13;
const LEVEL_BYTES = 28;

/**
 * Returns the metadata of a schema message with one field, a struct of two fields that share the same two children, and
 * so on. The tree of 2^levels fields takes some 28 bytes for each level.
 */
export function sharedSchema(levels: number): Buffer {
  const fieldsAt = 88;
  const nameAt = fieldsAt + (levels + 1) * LEVEL_BYTES;
  const bytes = Buffer.alloc(nameAt + 8);
  bytes.writeUInt32LE(1, nameAt);
  bytes.write("x", nameAt + 4);
  const vtable = (at: number, ...values: number[]) => {
    for (const [i, value] of [4 + 2 * values.length, 16, ...values].entries())
      bytes.writeUInt16LE(value, at + 2 * i);
  };
  // The message: version, kind and header.
  bytes.writeUInt32LE(16, 0);
  vtable(4, 4, 6, 8);
  bytes.writeInt32LE(12, 16);
  bytes.writeInt16LE(4, 20);
  bytes.writeUInt8(1, 22);
  bytes.writeUInt32LE(44 - 24, 24);
  // The schema and its vector of fields, whose length is 1.
  vtable(36, 0, 4);
  bytes.writeInt32LE(8, 44);
  bytes.writeUInt32LE(64 - 48, 48);
  bytes.writeUInt32LE(1, 64);
  bytes.writeUInt32LE(fieldsAt - 68, 68);
  // Each field: a type without a table, and two children that are both the field behind it.
  vtable(72, 12, 0, 4, 0, 0, 8);
  for (let level = 0; level <= levels; level++) {
    const at = fieldsAt + level * LEVEL_BYTES;
    bytes.writeInt32LE(at - 72, at);
    bytes.writeUInt8(STRUCT, at + 4);
    bytes.writeUInt32LE(16 - 8, at + 8);
    bytes.writeUInt32LE(nameAt - at - 12, at + 12);
    bytes.writeUInt32LE(level < levels ? 2 : 0, at + 16);
    bytes.writeUInt32LE(LEVEL_BYTES - 20, at + 20);
    bytes.writeUInt32LE(LEVEL_BYTES - 24, at + 24);
  }
  return bytes;
}

/** Returns a message in its frame, followed by its body. */
export function framed(metadata: Uint8Array, body: Uint8Array = new Uint8Array()): Buffer {
  const prefix = Buffer.alloc(8);
  prefix.writeUInt32LE(0xffffffff, 0);
  prefix.writeUInt32LE(metadata.byteLength, 4);
  return Buffer.concat([prefix, metadata, body]);
}

/** Returns a stream whose schema is {@link sharedSchema}. */
export function sharedSchemaStream(levels: number): Buffer {
  return Buffer.concat([framed(sharedSchema(levels)), END]);
}

/** Returns a stream in which one number of 64 bits replaces another, wherever that occurs. */
export function withNumber(stream: Uint8Array, from: bigint, to: bigint): Buffer {
  const bytes = Buffer.from(stream);
  const wanted = Buffer.alloc(8);
  wanted.writeBigInt64LE(from);
  for (let at = bytes.indexOf(wanted); at >= 0; at = bytes.indexOf(wanted, at + 8))
    bytes.writeBigInt64LE(to, at);
  return bytes;
}

/** Returns an LZ4 frame of blocks of some 270 bytes, each of which unpacks to 64 KiB of zeros. */
export function lz4Zeros(blocks: number): Buffer {
  const header = Buffer.from([0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82]);
  // A block: a zero, repeated by a match of 65,530 bytes with distance 1, and five more zeros.
  const run = 65_536 - 1 - 5 - 4 - 15;
  const data = Buffer.concat([
    Buffer.from([0x1f, 0, 1, 0]),
    Buffer.alloc(Math.floor(run / 255), 255),
    Buffer.from([run % 255, 0x50, 0, 0, 0, 0, 0]),
  ]);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(data.byteLength);
  return Buffer.concat([
    header,
    ...Array.from({ length: blocks }, () => [length, data]).flat(),
    Buffer.alloc(4),
  ]);
}

/**
 * Sizes, in bytes, of the body of the only batch of {@link PYARROW_STREAMS}' "lz4" and of its last buffer, which
 * unpacks to 1,100 bytes.
 */
const LZ4_BODY = { bytes: 920, lastAt: 856, lastBytes: 59 } as const;

/** Returns a stream whose last buffer is an LZ4 frame of many blocks and claims to unpack to 1,100 bytes. */
export function lz4Bomb(blocks: number): Buffer {
  const stream = Buffer.from(PYARROW_STREAMS.lz4, "base64");
  const bodyAt = stream.byteLength - END.byteLength - LZ4_BODY.bytes;
  const frame = lz4Zeros(blocks);
  const padding = Buffer.alloc(8 - (frame.byteLength % 8));
  const kept = stream.subarray(bodyAt, bodyAt + LZ4_BODY.lastAt + 8);
  const body = Buffer.concat([kept, frame, padding]);
  const lengths = withNumber(
    stream.subarray(0, bodyAt),
    BigInt(LZ4_BODY.lastBytes),
    BigInt(8 + frame.byteLength),
  );
  return Buffer.concat([withNumber(lengths, BigInt(LZ4_BODY.bytes), BigInt(body.byteLength)), body, END]);
}

/** Number of views in {@link sharedViews}, and size of the text to which all of them refer, in bytes. */
export const SHARED_VIEWS = { views: 1100, bytes: 65_536 } as const;

/** The schema of a column of views, and the head of a batch with so many of them. */
const VIEWS_HEAD =
  "/////3AAAAAQAAAAAAAKAAwABgAFAAgACgAAAAABBAAMAAAACAAIAAAABAAIAAAABAAAAAEAAAAUAAAAEAAUABAADwAOAAgAAAAE" +
  "ABAAAAAgAAAAGAAAAAAAGAEEAAAAAQAAAHYAAAAEAAQABAAAAAAAAAAAAAAA/////7AAAAAUAAAAAAAAAAwAFgAGAAUACAAMAAwA" +
  "AAAAAwQAHAAAAMBEAQAAAAAAAAAOABwAEAAMAAgAAAAEAA4AAAAYAAAAJAAAAFgAAABMBAAAAAAAAAAAAAABAAAAAQAAAAAAAAAA" +
  "AAAAAwAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAMBEAAAAAAAAwEQAAAAAAAAAAAEAAAAAAAAAAAABAAAATAQAAAAAAAAAAAAA" +
  "AAAAAA==";

/** Returns a stream of 83 kB whose rows are all the same text, which is there once. */
export function sharedViews(): Buffer {
  const { views, bytes } = SHARED_VIEWS;
  const view = Buffer.alloc(16);
  view.writeUInt32LE(bytes);
  view.write("xxxx", 4);
  const body = [Buffer.concat(Array<Buffer>(views).fill(view)), Buffer.alloc(bytes, "x")];
  return Buffer.concat([Buffer.from(VIEWS_HEAD, "base64"), ...body, END]);
}
