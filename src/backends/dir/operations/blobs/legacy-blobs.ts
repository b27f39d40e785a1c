import type { Field } from "apache-arrow";
import { createArrays, STRUCT_BYTES } from "../../../../arrow/ipc/arrays.ts";
import { findFooter, readBlocks } from "../../../../arrow/ipc/file-scan.ts";
import {
  type FlatTable,
  readTable,
  readTables,
  readUint8,
  readVector,
  rootTable,
  writeInt64,
  writeReference,
} from "../../../../arrow/ipc/flatbuffer.ts";
import {
  BLOCK_BYTES,
  type Block,
  CONTINUATION,
  FILE_MAGIC,
  readPrefix,
} from "../../../../arrow/ipc/message.ts";
import { unpack } from "../../../../arrow/ipc/unpack.ts";
import { type ArrowField, type ArrowSchema, schemaSteps } from "../../../../arrow/schema.ts";
import type { Upload } from "../../../../arrow/upload/upload.ts";
import { createPace, ITEMS_PER_STEP, inSlices } from "../../../../runtime/pace.ts";
import { BLOB_TYPE, EXTENSION } from "../../format/files/manifest.ts";

/** The metadata key of a binary column that older versions of Lance keep as blobs. */
const LEGACY = "lance-encoding:blob";

/** Number of bytes that are copied before the event loop may run. */
const COPY_BYTES = 8 * 1024 * 1024;

/** Size of a file's magic with its padding, and of the mark at the end of its messages. */
const FRAME_BYTES = 8;

/** A message of the new file: the body is that of the old one, and the rest is new. */
interface Rewritten {
  readonly block: Block;
  readonly head: Buffer;
  readonly tail: Uint8Array;
}

/** Columns of binary values that become blobs. */
type Chosen = ReadonlySet<ArrowField>;

/**
 * Returns an upload whose binary columns that are to be blobs have the type `lance.blob.v2`: `struct<data, uri>`, with the bytes as
 * `data` and a null as each `uri`. An upload without such columns passes as it is.
 *
 * The values keep their places in the bodies of the batches. The type of the column changes, and the arrays of each batch. The body is
 * followed by zeros, which are both validity and offsets of `uri`, and by 64-bit offsets in place of 32-bit ones.
 *
 * @param hold takes the memory of the new file, in bytes; an error that it throws ends the work
 * @param table the table that has blob columns already. Default: the legacy columns (`lance-encoding:blob`) become blobs, because the
 *   engine creates no other ones
 */
export async function withBlobColumns<T extends Upload>(
  upload: T,
  hold: (bytes: number) => void,
  table?: ArrowSchema,
): Promise<T> {
  const { file, schema, heldBytes } = upload;
  const chosen = new Set(table ? bytesForBlobs(schema.fields, table.fields) : legacyBlobs(schema.fields));
  if (chosen.size === 0) return upload;
  const pace = createPace();
  const footer = await footerWithBlobs(file, schema.fields, chosen);
  const root = rootTable(footer);
  let held = 0;
  const take = (bytes: number) => {
    hold(bytes);
    held += bytes;
  };
  const messages: Rewritten[] = [];
  let end = FRAME_BYTES;
  for (const [index, isBatch] of [
    [2, false],
    [3, true],
  ] as const) {
    const { at } = readVector(root, index);
    for (const [i, block] of readBlocks(root, index).entries()) {
      const message = await rewrite(file, block, isBatch ? schema.fields : [], chosen, take);
      messages.push(message);
      const bodyLength = padded(block.bodyLength) + message.tail.byteLength;
      footer.writeBigInt64LE(BigInt(end), at + i * BLOCK_BYTES);
      footer.writeInt32LE(message.head.byteLength, at + i * BLOCK_BYTES + 8);
      footer.writeBigInt64LE(BigInt(bodyLength), at + i * BLOCK_BYTES + 16);
      end += message.head.byteLength + bodyLength;
      await pace.pauseIfDue();
    }
  }
  const size = end + FRAME_BYTES + footer.byteLength + 4 + FILE_MAGIC.byteLength;
  take(size);
  const result = Buffer.alloc(size);
  result.set(FILE_MAGIC);
  let to = FRAME_BYTES;
  for (const { block, head, tail } of messages) {
    result.set(head, to);
    to += head.byteLength;
    const from = block.offset + block.metadataLength;
    for (let done = 0; done < block.bodyLength; done += COPY_BYTES) {
      result.set(file.subarray(from + done, from + Math.min(done + COPY_BYTES, block.bodyLength)), to + done);
      await pace.pauseIfDue();
    }
    to += padded(block.bodyLength);
    result.set(tail, to);
    to += tail.byteLength;
  }
  result.writeUInt32LE(CONTINUATION, to);
  result.set(footer, to + FRAME_BYTES);
  result.writeInt32LE(footer.byteLength, size - FILE_MAGIC.byteLength - 4);
  result.set(FILE_MAGIC, size - FILE_MAGIC.byteLength);
  const changed = await inSlices(schemaSteps(() => schemaOf(root)));
  return { ...upload, file: result, schema: changed, heldBytes: heldBytes + held };
}

/** Returns the legacy blob columns, also those in structs. */
function legacyBlobs(fields: readonly ArrowField[]): ArrowField[] {
  return fields.flatMap((field) => {
    if (isBytes(field)) return LEGACY in field.metadata ? [field] : [];
    return isStruct(field) ? legacyBlobs(field.children) : [];
  });
}

/** Returns the columns of bytes that are blobs in a table, also those in structs. */
function bytesForBlobs(fields: readonly ArrowField[], table: readonly ArrowField[]): ArrowField[] {
  const known = new Map(table.map((field) => [field.name, field]));
  return fields.flatMap((field) => {
    const target = known.get(field.name);
    if (target === undefined) return [];
    if (isBytes(field)) return target.metadata[EXTENSION] === BLOB_TYPE ? [field] : [];
    return isStruct(field) ? bytesForBlobs(field.children, target.children) : [];
  });
}

function isBytes({ type, dictionary }: ArrowField): boolean {
  return dictionary === undefined && (type.name === "binary" || type.name === "large_binary");
}

function isStruct({ type, dictionary }: ArrowField): boolean {
  return type.name === "struct" && dictionary === undefined;
}

/** Whether a field is a struct that has one of the chosen columns. */
function isAround(field: ArrowField, chosen: Chosen): boolean {
  return isStruct(field) && field.children.some((child) => chosen.has(child) || isAround(child, chosen));
}

/** Returns a copy of a file's footer whose schema has blob columns; references in it lead to fields behind its end. */
async function footerWithBlobs(file: Buffer, fields: readonly ArrowField[], chosen: Chosen): Promise<Buffer> {
  const { view } = findFooter(file);
  const old = file.subarray(
    view.byteOffset - file.byteOffset,
    view.byteOffset - file.byteOffset + view.byteLength,
  );
  const added = await schemaOfBlobs([...chosen]);
  const footer = Buffer.concat([old, Buffer.alloc(padded(old.byteLength) - old.byteLength), added]);
  const blobs = readTables(headerOf(added), 1).map(({ at }) => padded(old.byteLength) + at);
  redirect(schemaOf(rootTable(footer)), 1, fields);
  return footer;

  function redirect(table: FlatTable, index: number, among: readonly ArrowField[]): void {
    const { at } = readVector(table, index);
    const tables = readTables(table, index);
    for (const [i, field] of among.entries()) {
      const entry = at + i * 4;
      if (chosen.has(field)) footer.writeUInt32LE((blobs.shift() as number) - entry, entry);
      else if (isAround(field, chosen)) redirect(tables[i] as FlatTable, 5, field.children);
    }
  }
}

/** Returns the metadata of a schema message with the blob columns that the chosen ones become. */
async function schemaOfBlobs(fields: readonly ArrowField[]): Promise<Buffer> {
  const arrow = await import("apache-arrow");
  const parts = [
    new arrow.Field("data", new arrow.LargeBinary(), true),
    new arrow.Field("uri", new arrow.Utf8(), true),
  ];
  const columns = fields.map(({ name, nullable, metadata: { [LEGACY]: _, ...metadata } }): Field => {
    const entries = Object.entries({ ...metadata, [EXTENSION]: BLOB_TYPE });
    return new arrow.Field(name, new arrow.Struct(parts), nullable, new Map(entries));
  });
  const stream = Buffer.from(arrow.tableToIPC(new arrow.Table(new arrow.Schema(columns)), "stream"));
  const { bytes, metadataLength } = prefixOf(stream, 0);
  return stream.subarray(bytes, bytes + metadataLength);
}

/** Returns a message of the new file. Without fields it is the old one. */
async function rewrite(
  file: Buffer,
  { offset, metadataLength, bodyLength }: Block,
  fields: readonly ArrowField[],
  chosen: Chosen,
  take: (bytes: number) => void,
): Promise<Rewritten> {
  const block = { offset, metadataLength, bodyLength };
  const bodyAt = offset + metadataLength;
  const old = file.subarray(offset + prefixOf(file, offset).bytes, bodyAt);
  if (fields.length === 0) return { block, head: framed([old]), tail: new Uint8Array() };
  const body = file.subarray(bodyAt, bodyAt + bodyLength);
  const { nodes, buffers, tail } = await arraysWithBlobs(headerOf(old), body, fields, chosen, take);
  const head = framed([old, vectorOf(nodes), vectorOf(buffers)]);
  const message = rootTable(head.subarray(FRAME_BYTES));
  const header = readTable(message, 2) as FlatTable;
  // A vector's length comes right before its first element.
  const nodesAt = padded(old.byteLength) + 4;
  writeReference(header, 1, nodesAt);
  writeReference(header, 2, nodesAt + 8 + nodes.length * 8);
  if (tail.byteLength > 0) writeInt64(message, 3, BigInt(padded(bodyLength) + tail.byteLength));
  return { block, head, tail };
}

/** Returns the arrays and buffers of a batch with blob columns, as pairs of numbers, and the bytes for them behind the body. */
async function arraysWithBlobs(
  header: FlatTable,
  body: Buffer,
  fields: readonly ArrowField[],
  chosen: Chosen,
  take: (bytes: number) => void,
) {
  const arrays = createArrays(header, body);
  const compression = readTable(header, 3);
  const [nodes, buffers, pieces]: [bigint[], bigint[], Uint8Array[]] = [[], [], []];
  let end = padded(body.byteLength);

  const pairs = (index: number, from: number, to: number): bigint[] => {
    const { at } = readVector(header, index);
    return Array.from({ length: (to - from) * 2 }, (_, i) =>
      header.view.getBigInt64(at + from * STRUCT_BYTES + i * 8, true),
    );
  };
  /** Adds a buffer behind the body. A stored buffer of a compressed batch begins with -1. Returns its position and size, and its contents. */
  function append(bytes: number) {
    const start = compression === undefined ? 0 : 8;
    take(start + bytes);
    const piece = Buffer.alloc(padded(start + bytes));
    if (start > 0) piece.writeBigInt64LE(-1n);
    pieces.push(piece);
    const position = BigInt(end);
    end += piece.byteLength;
    return { position, sizeOf: (size: number) => BigInt(start + size), contents: piece.subarray(start) };
  }
  /** Returns the contents of a buffer. */
  function read(position: bigint, size: bigint): Uint8Array {
    const stored = body.subarray(Number(position), Number(position + size));
    if (compression === undefined) return stored;
    const unpacked = stored.readBigInt64LE();
    if (unpacked === -1n) return stored.subarray(8);
    return unpack(readUint8(compression, 0) === 0 ? "lz4" : "zstd", stored.subarray(8), Number(unpacked));
  }
  async function addBlob(
    { type }: ArrowField,
    [length = 0n, nulls = 0n]: readonly bigint[],
    [validity = 0n, validityBytes = 0n, offsets = 0n, offsetBytes = 0n, ...values]: readonly bigint[],
  ): Promise<void> {
    // The struct is null where its bytes are.
    nodes.push(length, nulls, length, nulls, length, length);
    buffers.push(validity, validityBytes, validity, validityBytes);
    const rows = Number(length);
    if (rows === 0) {
      buffers.push(0n, 0n, ...values, 0n, 0n, 0n, 0n, 0n, 0n);
      return;
    }
    if (type.name === "large_binary") buffers.push(offsets, offsetBytes, ...values);
    else {
      const wide = append((rows + 1) * 8);
      await widen(read(offsets, offsetBytes), rows + 1, wide.contents);
      buffers.push(wide.position, wide.sizeOf((rows + 1) * 8), ...values);
    }
    const zeros = append((rows + 1) * 4);
    for (const size of [Math.ceil(rows / 8), (rows + 1) * 4])
      buffers.push(zeros.position, zeros.sizeOf(size));
    buffers.push(0n, 0n);
  }
  async function add(field: ArrowField): Promise<void> {
    const isParent = isAround(field, chosen);
    const [node, buffer] = [arrays.nodes, arrays.buffers];
    arrays.skip(isParent ? { ...field, children: [] } : field);
    const passed = [pairs(1, node, arrays.nodes), pairs(2, buffer, arrays.buffers)] as const;
    if (chosen.has(field)) return addBlob(field, ...passed);
    for (const each of passed[0]) nodes.push(each);
    for (const each of passed[1]) buffers.push(each);
    if (isParent) for (const child of field.children) await add(child);
  }
  for (const field of fields) await add(field);
  return { nodes, buffers, tail: Buffer.concat(pieces) };
}

/** Writes 32-bit offsets as 64-bit ones. */
async function widen(offsets: Uint8Array, count: number, to: Buffer): Promise<void> {
  const from = new DataView(offsets.buffer, offsets.byteOffset, offsets.byteLength);
  const pace = createPace();
  for (let i = 0; i < count; i++) {
    to.writeUInt32LE(from.getUint32(i * 4, true), i * 8);
    if (i % ITEMS_PER_STEP === 0) await pace.pauseIfDue();
  }
}

/** Returns pairs of numbers as a vector of FlatBuffers, whose elements are at a multiple of eight bytes. */
function vectorOf(numbers: readonly bigint[]): Buffer {
  const vector = Buffer.alloc(8 + numbers.length * 8);
  vector.writeUInt32LE(numbers.length / 2, 4);
  for (const [i, number] of numbers.entries()) vector.writeBigInt64LE(number, 8 + i * 8);
  return vector;
}

/** Returns pieces of metadata, each at a multiple of eight bytes, after the prefix of a message. */
function framed(pieces: readonly Uint8Array[]): Buffer {
  const length = pieces.reduce((sum, { byteLength }) => sum + padded(byteLength), 0);
  const head = Buffer.alloc(FRAME_BYTES + length);
  head.writeUInt32LE(CONTINUATION, 0);
  head.writeInt32LE(length, 4);
  let at = FRAME_BYTES;
  for (const piece of pieces) {
    head.set(piece, at);
    at += padded(piece.byteLength);
  }
  return head;
}

/** Returns the prefix of a message of a checked file. */
function prefixOf(bytes: Buffer, position: number) {
  return readPrefix(bytes, position) as NonNullable<ReturnType<typeof readPrefix>>;
}

/** Returns the table of the schema, dictionary or batch in the metadata of a checked message. */
function headerOf(metadata: Uint8Array): FlatTable {
  return readTable(rootTable(metadata), 2) as FlatTable;
}

/** Returns the table of the schema in the footer of a checked file. */
function schemaOf(footer: FlatTable): FlatTable {
  return readTable(footer, 1) as FlatTable;
}

function padded(length: number): number {
  return Math.ceil(length / 8) * 8;
}
