/*
 * The public format of Roaring bitmaps of 32-bit numbers: a cookie, which says whether there are runs; for each
 * container the upper half of its numbers and how many they are; where the containers begin; the containers. All
 * numbers are little endian.
 */

const PLAIN_COOKIE = 12346;
const RUN_COOKIE = 12347;

/** Containers with more numbers are bitmaps of 65,536 bits. */
const MAX_ARRAY = 4096;
const BITMAP_BYTES = 8192;

/** From this number of containers on, a bitmap with runs says where they begin. */
const OFFSETS_FROM = 4;

/** Whether a number is in a set. */
export type Contains = (number: number) => boolean;

/**
 * Reads a Roaring bitmap. It is not unpacked, because a few bytes can mean all 32-bit numbers.
 *
 * @throws RangeError for other bytes
 */
export function readRoaring(bytes: Uint8Array): Contains {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 0;
  const skip = (count: number) => {
    at += count;
    return at - count;
  };
  const cookie = view.getUint32(skip(4), true);
  const hasRuns = (cookie & 0xffff) === RUN_COOKIE;
  if (!hasRuns && cookie !== PLAIN_COOKIE) throw new RangeError("the bytes are not a Roaring bitmap");
  const size = hasRuns ? (cookie >>> 16) + 1 : view.getUint32(skip(4), true);
  const flags = hasRuns ? skip(Math.ceil(size / 8)) : undefined;
  const headers = skip(4 * size);
  if (!hasRuns || size >= OFFSETS_FROM) skip(4 * size);

  const containers = new Map<number, Contains>();
  for (let index = 0; index < size; index++) {
    const upper = view.getUint16(headers + 4 * index, true);
    const count = view.getUint16(headers + 4 * index + 2, true) + 1;
    if (flags !== undefined && bitAt(view, flags, index)) {
      const runs = view.getUint16(skip(2), true);
      containers.set(upper, inRuns(numbersAt(view, skip(4 * runs), 2 * runs)));
    } else if (count <= MAX_ARRAY) {
      const numbers = new Set(numbersAt(view, skip(2 * count), count));
      containers.set(upper, (lower) => numbers.has(lower));
    } else {
      const start = skip(BITMAP_BYTES);
      if (at > bytes.byteLength) throw new RangeError("the Roaring bitmap is cut off");
      containers.set(upper, (lower) => bitAt(view, start, lower));
    }
  }
  return (number) => containers.get(number >>> 16)?.(number & 0xffff) ?? false;
}

/** Runs are pairs: a first number, and how many follow it. */
function inRuns(runs: readonly number[]): Contains {
  return (lower) =>
    runs.some((start, i) => i % 2 === 0 && start <= lower && lower <= start + (runs[i + 1] as number));
}

function numbersAt(view: DataView, start: number, count: number): number[] {
  return Array.from({ length: count }, (_, i) => view.getUint16(start + 2 * i, true));
}

function bitAt(view: DataView, start: number, bit: number): boolean {
  return ((view.getUint8(start + (bit >> 3)) >> (bit & 7)) & 1) === 1;
}

/** Writes a Roaring bitmap of numbers, without runs. */
export function encodeRoaring(numbers: Iterable<number>): Uint8Array {
  const byUpper = Map.groupBy(
    [...new Set(numbers)].sort((a, b) => a - b),
    (number) => number >>> 16,
  );
  const containers = [...byUpper].map(([upper, own]) => [upper, own, encodeContainer(own)] as const);
  const headerBytes = 8 + 8 * containers.length;
  const header = Buffer.alloc(headerBytes);
  header.writeUInt32LE(PLAIN_COOKIE, 0);
  header.writeUInt32LE(containers.length, 4);
  let start = headerBytes;
  for (const [index, [upper, own, bytes]] of containers.entries()) {
    header.writeUInt16LE(upper, 8 + 4 * index);
    header.writeUInt16LE(own.length - 1, 8 + 4 * index + 2);
    header.writeUInt32LE(start, 8 + 4 * containers.length + 4 * index);
    start += bytes.byteLength;
  }
  return Buffer.concat([header, ...containers.map(([, , bytes]) => bytes)]);
}

function encodeContainer(numbers: readonly number[]): Buffer {
  const lowers = numbers.map((number) => number & 0xffff);
  if (lowers.length > MAX_ARRAY) {
    const bits = Buffer.alloc(BITMAP_BYTES);
    for (const lower of lowers) bits[lower >> 3] = (bits[lower >> 3] as number) | (1 << (lower & 7));
    return bits;
  }
  const bytes = Buffer.alloc(2 * lowers.length);
  for (const [index, lower] of lowers.entries()) bytes.writeUInt16LE(lower, 2 * index);
  return bytes;
}
