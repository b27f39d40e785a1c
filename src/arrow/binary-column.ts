import { STRUCT_BYTES } from "./ipc/arrays.ts";
import { readTable, readVector, rootTable, writeInt64 } from "./ipc/flatbuffer.ts";
import { readPrefix } from "./ipc/message.ts";

/** Writes an Arrow IPC stream with a single column of binary values, which may be too large for memory. */
export interface BinaryColumn {
  /** The schema message, with which the stream begins. */
  readonly schema: Uint8Array;
  /**
   * Returns the bytes around the values of a record batch, which follow each other without gaps.
   *
   * @param sizes the size of each value in bytes, or undefined for null
   */
  batch(sizes: readonly (number | undefined)[]): BinaryBatch;
}

/** The bytes before and behind the values of a record batch. */
export interface BinaryBatch {
  readonly head: Uint8Array;
  readonly tail: Uint8Array;
}

const OFFSET_BYTES = 8;

/**
 * Prepares a stream with a nullable column of the type `large_binary`.
 *
 * Arrow's library writes the schema and an exemplary batch. The metadata of all batches is that of this one, with other
 * numbers in place.
 */
export async function createBinaryColumn(name: string): Promise<BinaryColumn> {
  const { LargeBinary, Table, tableToIPC, vectorFromArray } = await import("apache-arrow");
  const column = vectorFromArray([null, Uint8Array.of(1)], new LargeBinary());
  const stream = Buffer.from(tableToIPC(new Table({ [name]: column }), "stream"));
  const schemaEnd = metadataEnd(stream, 0);
  const template = stream.subarray(schemaEnd, metadataEnd(stream, schemaEnd));
  return { schema: stream.subarray(0, schemaEnd), batch: (sizes) => enclose(template, sizes) };
}

/** Returns the end of the metadata of the message at a position. */
function metadataEnd(stream: Buffer, at: number): number {
  const { bytes, metadataLength } = readPrefix(stream, at) as { bytes: number; metadataLength: number };
  return at + bytes + metadataLength;
}

function enclose(template: Uint8Array, sizes: readonly (number | undefined)[]): BinaryBatch {
  const validity = Buffer.alloc(padded(Math.ceil(sizes.length / 8)));
  const offsets = Buffer.alloc((sizes.length + 1) * OFFSET_BYTES);
  let [end, nulls] = [0, 0];
  for (const [row, size] of sizes.entries()) {
    if (size === undefined) nulls++;
    else validity[row >> 3] = (validity[row >> 3] as number) | (1 << (row & 7));
    end += size ?? 0;
    offsets.writeBigInt64LE(BigInt(end), (row + 1) * OFFSET_BYTES);
  }
  const message = Buffer.from(template);
  const metadata = message.subarray(readPrefix(message, 0)?.bytes);
  const root = rootTable(metadata);
  const header = readTable(root, 2);
  if (header === undefined) throw new Error("the exemplary batch has no header");
  writeInt64(root, 3, BigInt(validity.byteLength + offsets.byteLength + padded(end)));
  writeInt64(header, 0, BigInt(sizes.length));
  const pairs = [
    [readVector(header, 1).at, sizes.length, nulls],
    ...[
      [0, validity.byteLength],
      [validity.byteLength, offsets.byteLength],
      [validity.byteLength + offsets.byteLength, end],
    ].map(([start, length], i) => [readVector(header, 2).at + i * STRUCT_BYTES, start, length]),
  ] as [at: number, first: number, second: number][];
  for (const [at, first, second] of pairs) {
    header.view.setBigInt64(at, BigInt(first), true);
    header.view.setBigInt64(at + 8, BigInt(second), true);
  }
  return { head: Buffer.concat([message, validity, offsets]), tail: new Uint8Array(padded(end) - end) };
}

function padded(length: number): number {
  return Math.ceil(length / 8) * 8;
}
