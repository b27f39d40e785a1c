import type { Manifest } from "../../../../gen/lance/format/table_pb.ts";
import { ManifestSchema } from "../../../../gen/lance/format/table_pb.ts";
import type { LanceError } from "../../../../namespace/errors.ts";
import { decodeSteps, encodeSteps } from "../../../../namespace/messages/message-steps.ts";
import { atOnce, inSlices, type Steps } from "../../../../runtime/pace.ts";
import type { ObjectStore } from "../storage.ts";
import { damagedFile } from "./damaged-file.ts";

/*
 * A manifest file consists, in this order, of dictionaries (only with the oldest data format), the list of indices, the
 * transaction, the manifest, and a footer of 16 bytes: the position of the manifest as a signed 64-bit number, two
 * 16-bit numbers of the file format (0 and 2), and the magic. The list of indices, the transaction and the manifest are
 * protobuf messages, each after its length in 32 bits. All numbers are little endian, and all positions are relative to
 * the start of the file.
 */

const FOOTER_BYTES = 16;
const LENGTH_BYTES = 4;
const MAGIC = "LANC";

/** Number of bytes that are read at once from the end, as in the engine; most manifests are smaller. */
const TAIL_BYTES = 64 * 1024;

/** A manifest and its file. */
export interface ManifestFile {
  readonly key: string;
  readonly manifest: Manifest;
  /** Position of the manifest in the file, in bytes. */
  readonly position: number;
  /** The eight bytes after the position of the manifest. */
  readonly signature: Uint8Array;
  /** Reads from the file; bytes that were read with the manifest are not read again. */
  read(start: number, end: number): Promise<Uint8Array>;
}

/**
 * Reads a manifest file.
 *
 * @returns `undefined` if the file does not exist
 * @throws Error naming the file if it does not contain a manifest
 */
export async function readManifestFile(store: ObjectStore, key: string): Promise<ManifestFile | undefined> {
  const tail = await store.getTail(key, TAIL_BYTES);
  if (!tail) return undefined;
  const tailStart = tail.size - tail.bytes.byteLength;
  const footer = readFooter(key, tail.bytes, tail.size);

  const read = async (start: number, end: number): Promise<Uint8Array> => {
    if (start >= tailStart) return tail.bytes.subarray(start - tailStart, end - tailStart);
    const bytes = await store.getRange(key, start, end);
    if (bytes?.byteLength !== end - start) throw corrupt(key, "it changed while it was read");
    return bytes;
  };
  const body = await read(footer.position, tail.size - FOOTER_BYTES);
  return { key, manifest: await inSlices(decodeManifest(key, body)), ...footer, read };
}

/** Wraps a manifest file in memory, under its current or future key. */
export function manifestFileOf(key: string, bytes: Uint8Array, manifest: Manifest): ManifestFile {
  const footer = readFooter(key, bytes, bytes.byteLength);
  return { key, manifest, ...footer, read: async (start, end) => bytes.subarray(start, end) };
}

/**
 * Decodes a manifest file in memory.
 *
 * @throws Error naming the file if it does not contain a manifest
 */
export function parseManifestFile(key: string, bytes: Uint8Array): Manifest {
  const { position } = readFooter(key, bytes, bytes.byteLength);
  return atOnce(decodeManifest(key, bytes.subarray(position, bytes.byteLength - FOOTER_BYTES)));
}

/** Reads the message at a position in a manifest file, without its length. */
export async function readSection(file: ManifestFile, position: bigint): Promise<Uint8Array> {
  const start = Number(position) + LENGTH_BYTES;
  if (start > file.position) throw corrupt(file.key, `there is no section at ${position}`);
  const length = viewOf(await file.read(start - LENGTH_BYTES, start)).getUint32(0, true);
  if (start + length > file.position) throw corrupt(file.key, `the section at ${position} is too long`);
  return file.read(start, start + length);
}

/**
 * Reads the part of a file before transaction and manifest, which the next version inherits: dictionaries and the list
 * of indices. Positions in it stay valid, so nothing that points into it needs to be known or changed.
 */
export async function readInheritedPart(file: ManifestFile): Promise<Uint8Array> {
  const { indexSection, transactionSection, transactionSectionDeprecated } = file.manifest;
  const end =
    indexSection !== undefined
      ? Number(indexSection) + LENGTH_BYTES + (await readSection(file, indexSection)).byteLength
      : Math.min(file.position, Number(transactionSection ?? transactionSectionDeprecated ?? file.position));
  return file.read(0, end);
}

/**
 * Builds a manifest file, in steps.
 *
 * @param inherited the part before the transaction; see {@link readInheritedPart}
 * @param manifest written as it is: its `transactionSection` must be the length of `inherited`
 */
export function* manifestFileSteps(
  inherited: Uint8Array,
  transaction: Uint8Array,
  manifest: Manifest,
  signature: Uint8Array,
): Steps<Uint8Array> {
  const position = inherited.byteLength + LENGTH_BYTES + transaction.byteLength;
  const body = yield* encodeSteps(ManifestSchema, manifest);
  const length = body.reduce((sum, part) => sum + part.byteLength, 0);
  const footer = new Uint8Array(FOOTER_BYTES);
  viewOf(footer).setBigInt64(0, BigInt(position), true);
  footer.set(signature, 8);
  yield;
  return Buffer.concat([
    inherited,
    inBytes(transaction.byteLength),
    transaction,
    inBytes(length),
    ...body,
    footer,
  ]);
}

/** Builds a manifest file, as {@link manifestFileSteps} does, without a pause. */
export function buildManifestFile(...parts: Parameters<typeof manifestFileSteps>): Uint8Array {
  return atOnce(manifestFileSteps(...parts));
}

function readFooter(
  key: string,
  bytes: Uint8Array,
  fileSize: number,
): { readonly position: number; readonly signature: Uint8Array } {
  const signature = bytes.subarray(bytes.byteLength - 8);
  if (bytes.byteLength < FOOTER_BYTES || Buffer.from(signature.subarray(4)).toString("latin1") !== MAGIC) {
    throw corrupt(key, "it does not end as one");
  }
  const position = Number(viewOf(bytes).getBigInt64(bytes.byteLength - FOOTER_BYTES, true));
  if (position < 0 || position + LENGTH_BYTES + FOOTER_BYTES > fileSize) {
    throw corrupt(key, `there is no manifest at ${position}`);
  }
  return { position, signature };
}

/** A version may have thousands of fields, and a hundred thousand fragments. */
function* decodeManifest(key: string, body: Uint8Array): Steps<Manifest> {
  const message = body.subarray(LENGTH_BYTES);
  const length = viewOf(body).getUint32(0, true);
  if (length !== message.byteLength)
    throw corrupt(key, `it holds ${message.byteLength} bytes, not ${length}`);
  try {
    return yield* decodeSteps(ManifestSchema, message);
  } catch (error) {
    throw corrupt(key, "it cannot be decoded", error);
  }
}

function inBytes(length: number): Uint8Array {
  const bytes = new Uint8Array(LENGTH_BYTES);
  viewOf(bytes).setUint32(0, length, true);
  return bytes;
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function corrupt(key: string, reason: string, cause?: unknown): LanceError {
  return damagedFile(key, `is not a manifest: ${reason}`, cause);
}
