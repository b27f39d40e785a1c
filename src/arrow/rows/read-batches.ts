import type { RecordBatch } from "apache-arrow";
import { LanceError } from "../../namespace/errors.ts";
import { STRUCT_BYTES } from "../ipc/arrays.ts";
import {
  type FlatTable,
  readInt16,
  readInt64,
  readLength,
  readTable,
  readTables,
  readUint8,
  readVector,
  rootTable,
  writeInt64,
  writeUint8,
} from "../ipc/flatbuffer.ts";

/**
 * Yields the batches of Arrow IPC, a stream or a file that is cut anywhere. It loads apache-arrow. Large lists of a stream become lists.
 *
 * @throws LanceError Internal for bytes that cannot be decoded, and every error of the bytes.
 */
export async function* readBatches(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<RecordBatch> {
  const { RecordBatchReader } = await import("apache-arrow");
  const source = bytes[Symbol.asyncIterator]();
  let failure: unknown;
  // The reader sometimes treats a failure of its source as the end of the stream; this keeps the failure for later.
  async function* watched() {
    try {
      yield* { [Symbol.asyncIterator]: () => source };
    } catch (thrown) {
      failure = thrown;
      throw thrown;
    }
  }
  try {
    const reader = await RecordBatchReader.from(withSmallLists(watched()));
    for await (const batch of reader) yield batch;
  } catch (thrown) {
    throw failure ?? undecodable(thrown);
  } finally {
    await source.return?.();
  }
  if (failure !== undefined) throw failure;
}

/** Returns the error for rows that the library cannot decode. */
export function undecodable(thrown: unknown): unknown {
  if (thrown instanceof LanceError) return thrown;
  const text = thrown instanceof Error ? thrown.message : String(thrown);
  return new LanceError("Internal", `cannot decode the rows of the response: ${text}`, { cause: thrown });
}

/** Types by their number in Arrow's union of types. */
const Type = {
  null: 1,
  binary: 4,
  utf8: 5,
  list: 12,
  struct: 13,
  union: 14,
  fixedSizeList: 16,
  map: 17,
  largeBinary: 19,
  largeUtf8: 20,
  largeList: 21,
} as const;

const OF_OFFSETS: ReadonlySet<number> = new Set([
  ...[Type.binary, Type.utf8, Type.largeBinary, Type.largeUtf8],
  ...[Type.list, Type.largeList, Type.map],
]);

/** The buffers of a field. */
interface Layout {
  /** Number of buffers before those of the children. */
  readonly buffers: number;
  readonly isLargeList: boolean;
  readonly children: readonly Layout[];
}

const SCHEMA = 1;
const BATCH = 3;

/**
 * Turns the large lists of an IPC stream into lists, which have offsets of 32 bits: the library of Arrow for JavaScript knows no others, and a
 * batch that it holds has no more values. Other streams, and files, pass unchanged. It runs in browsers, too.
 *
 * @throws LanceError Unsupported for compressed batches, and for lists of more values than fit
 */
async function* withSmallLists(chunks: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  const source = chunks[Symbol.asyncIterator]();
  try {
    let pending = new Uint8Array();
    /** Has at least some bytes pending, if there are as many. */
    const fill = async (length: number) => {
      const pieces = [pending];
      let size = pending.byteLength;
      while (size < length) {
        const next = await source.next();
        if (next.done) break;
        pieces.push(next.value as Uint8Array<ArrayBuffer>);
        size += next.value.byteLength;
      }
      if (pieces.length > 1) pending = joined(pieces, size);
      return size >= length;
    };
    let layouts: readonly Layout[] | undefined;
    while (await fill(8)) {
      const view = new DataView(pending.buffer, pending.byteOffset);
      const [first, metadataBytes] = [view.getUint32(0, true), view.getUint32(4, true)];
      // A file, the framing before Arrow 0.15, or the end.
      if (first !== 0xffffffff || metadataBytes === 0 || !(await fill(8 + metadataBytes))) break;
      const message = rootTable(pending.subarray(8, 8 + metadataBytes));
      const bodyBytes = Number(readInt64(message, 3));
      if (bodyBytes < 0) break;
      const kind = readUint8(message, 1);
      if (kind === SCHEMA) {
        // The chunk belongs to others.
        pending = pending.slice();
        layouts = shrinkSchema(rootTable(pending.subarray(8, 8 + metadataBytes)));
        if (layouts === undefined) break;
      }
      const end = 8 + metadataBytes + bodyBytes;
      if (!(await fill(end))) break;
      const whole = pending.slice(0, end);
      pending = pending.subarray(end);
      if (kind !== BATCH || layouts === undefined) yield whole;
      else yield* shrinkBatch(whole, metadataBytes, layouts);
    }
    if (pending.byteLength > 0) yield pending;
    yield* { [Symbol.asyncIterator]: () => source };
  } finally {
    await source.return?.();
  }
}

function joined(pieces: readonly Uint8Array[], size: number): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(size);
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.byteLength;
  }
  return all;
}

/** Renames the large lists of a schema in place; returns undefined if there are none. */
function shrinkSchema(message: FlatTable): readonly Layout[] | undefined {
  const schema = readTable(message, 2);
  const layouts = schema === undefined ? [] : readTables(schema, 1).map(layoutOf);
  return layouts.some(isConcerned) ? layouts : undefined;
}

function isConcerned({ isLargeList, children }: Layout): boolean {
  return isLargeList || children.some(isConcerned);
}

function layoutOf(field: FlatTable): Layout {
  // A batch has the indices of a dictionary, whose values stay as they are.
  if (readTable(field, 4) !== undefined) return { buffers: 2, isLargeList: false, children: [] };
  const code = readUint8(field, 2);
  const isLargeList = code === Type.largeList;
  if (isLargeList) writeUint8(field, 2, Type.list);
  return { buffers: buffersOf(code, field), isLargeList, children: readTables(field, 5).map(layoutOf) };
}

function buffersOf(code: number, field: FlatTable): number {
  switch (code) {
    case Type.null:
      return 0;
    case Type.struct:
    case Type.fixedSizeList:
      return 1;
    case Type.union: {
      const type = readTable(field, 3);
      return type !== undefined && readInt16(type, 0) === 1 ? 2 : 1;
    }
    case Type.list:
    case Type.largeList:
    case Type.map:
      return 2;
    default:
      return OF_OFFSETS.has(code) ? 3 : 2;
  }
}

/** Yields a batch whose large lists have offsets of 32 bits, which are added to the body: others may share the former ones. */
function* shrinkBatch(
  whole: Uint8Array<ArrayBuffer>,
  metadataBytes: number,
  layouts: readonly Layout[],
): Iterable<Uint8Array> {
  const message = rootTable(whole.subarray(8, 8 + metadataBytes));
  const batch = readTable(message, 2);
  if (batch === undefined) throw new RangeError("a batch has no header");
  if (readTable(batch, 3) !== undefined)
    throw new LanceError("Unsupported", "large lists in compressed batches cannot be read here");
  const body = whole.subarray(8 + metadataBytes);
  const { view } = batch;
  const buffers = readVector(batch, 2, STRUCT_BYTES);
  const padding = (8 - (body.byteLength % 8)) % 8;
  const added: Uint8Array[] = padding === 0 ? [] : [new Uint8Array(padding)];
  let [buffer, length] = [0, body.byteLength + padding];
  const walk = ({ buffers: own, isLargeList, children }: Layout) => {
    if (isLargeList) {
      if (buffer + 1 >= buffers.length) throw new RangeError("a buffer is missing");
      const at = buffers.at + (buffer + 1) * STRUCT_BYTES;
      const start = readLength(view, at);
      const offsets = smallOffsets(body.subarray(start, start + readLength(view, at + 8)));
      view.setBigInt64(at, BigInt(length), true);
      view.setBigInt64(at + 8, BigInt(offsets.byteLength), true);
      added.push(offsets);
      length += offsets.byteLength;
    }
    buffer += own;
    children.forEach(walk);
  };
  layouts.forEach(walk);
  writeInt64(message, 3, BigInt(length));
  yield whole;
  yield* added;
}

/** Returns offsets of 64 bits as those of 32 bits, filled up to whole words. */
function smallOffsets(bytes: Uint8Array): Uint8Array {
  const count = bytes.byteLength >> 3;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const offsets = new Int32Array(count + (count % 2));
  for (let i = 0; i < count; i++) {
    const offset = readLength(view, i * 8);
    if (offset > 2 ** 31 - 1)
      throw new LanceError("Unsupported", "a large list has too many values to be read here");
    offsets[i] = offset;
  }
  return new Uint8Array(offsets.buffer);
}
