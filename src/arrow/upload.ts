import { LanceError } from "../namespace/errors.ts";
import { type BodyCheck, createBodyCheck } from "./body-check.ts";
import { isIpcFile, scanIpcFile } from "./file-scan.ts";
import { type Block, fileTail } from "./footer.ts";
import { FILE_MAGIC, MAX_METADATA_BYTES, malformed, parseMessageHead, readPrefix } from "./message.ts";
import { type ArrowSchema, decodeSchema } from "./schema.ts";

/** Options of {@link collectUpload}. */
export interface UploadOptions {
  /** The largest upload, and the largest sum of its buffers once they are unpacked, in bytes. */
  readonly maxBytes: number;
  /** Ends the upload with LanceError Cancelled. */
  readonly signal?: AbortSignal;
}

/** An upload as the engine wants it. */
export interface Upload {
  /** The whole as an Arrow IPC file. */
  readonly file: Buffer;
  readonly schema: ArrowSchema;
  readonly rows: number;
}

/** The magic of a file is padded, so that messages begin at a multiple of eight. */
const FILE_HEAD_BYTES = 8;

/** The room for the footer: a repetition of the schema and the places of the messages. */
const MAX_TAIL_BYTES = 2 * MAX_METADATA_BYTES;

/** How far the memory grows beyond what has arrived, in bytes. */
const GROWTH_BYTES = 4 * 1024 * 1024;

/**
 * Collects an Arrow IPC stream, split anywhere, into an IPC file, and checks it on the way.
 *
 * A file is the stream between a magic and a footer, so the bytes are stored once, at their final place, in a
 * buffer that grows without being copied. Nothing is decoded; compressed buffers pass as they are. An upload
 * that is an IPC file already is checked and passes as a whole.
 *
 * @throws LanceError InvalidInput for anything but one whole stream or file, with the place of the fault;
 *   PayloadTooLarge past the limit; Cancelled when the signal aborts.
 */
export async function collectUpload(
  chunks: AsyncIterable<Uint8Array>,
  { maxBytes, signal }: UploadOptions,
): Promise<Upload> {
  const memory = new ArrayBuffer(0, { maxByteLength: FILE_HEAD_BYTES + maxBytes + MAX_TAIL_BYTES });
  const scanner = createStreamScanner(maxBytes);
  let length = 0;
  const reserve = (bytes: number) => {
    if (bytes > memory.byteLength) memory.resize(Math.min(memory.maxByteLength, bytes + GROWTH_BYTES));
  };
  const received = () => Buffer.from(memory, FILE_HEAD_BYTES, length);
  const cancelled = () => {
    if (signal?.aborted) throw new LanceError("Cancelled", "the upload was cancelled");
  };
  for await (const chunk of chunks) {
    cancelled();
    if (length + chunk.byteLength > maxBytes) {
      throw new LanceError("PayloadTooLarge", `body is larger than ${maxBytes} bytes`);
    }
    reserve(FILE_HEAD_BYTES + length + chunk.byteLength);
    new Uint8Array(memory, FILE_HEAD_BYTES + length).set(chunk);
    length += chunk.byteLength;
    const bytes = received();
    if (length >= FILE_MAGIC.byteLength && !isIpcFile(bytes)) scanner.advance(bytes);
  }
  cancelled();
  if (length === 0) throw new LanceError("InvalidInput", "the body is empty; it must be an Arrow IPC stream");
  if (isIpcFile(received())) return { file: received(), ...scanIpcFile(received(), maxBytes) };

  const { end, dictionaries, batches, schemaMetadata, schema, rows } = scanner.finish(received());
  const tail = fileTail(schemaMetadata, dictionaries, batches);
  if (tail.byteLength > MAX_TAIL_BYTES) throw malformed(end, "there are too many record batches");
  reserve(FILE_HEAD_BYTES + end + tail.byteLength);
  const file = Buffer.from(memory, 0, FILE_HEAD_BYTES + end + tail.byteLength);
  file.set(FILE_MAGIC);
  file.set(tail, FILE_HEAD_BYTES + end);
  return { file, schema, rows };
}

interface StreamParts {
  /** Where the stream ends, before the end-of-stream mark. */
  readonly end: number;
  readonly dictionaries: readonly Block[];
  readonly batches: readonly Block[];
  readonly schemaMetadata: Uint8Array;
  readonly schema: ArrowSchema;
  readonly rows: number;
}

/** Follows the messages of a stream while it arrives. */
function createStreamScanner(maxBytes: number) {
  const blocks = { dictionary: [] as Block[], batch: [] as Block[] };
  let position = 0;
  let schemaAt: readonly [start: number, end: number] = [0, 0];
  let check: BodyCheck | undefined;
  let ended = false;

  /** Takes the next message; false when it has not arrived as a whole. */
  function next(bytes: Buffer): boolean {
    const prefix = readPrefix(bytes, position);
    if (prefix === undefined) return false;
    if (prefix.metadataLength === 0) {
      ended = true;
      return false;
    }
    const metadataAt = position + prefix.bytes;
    const bodyAt = metadataAt + prefix.metadataLength;
    if (bodyAt > bytes.byteLength) return false;
    const metadata = bytes.subarray(metadataAt, bodyAt);
    const head = parseMessageHead(metadata, position);
    const end = bodyAt + head.bodyLength;
    if (end > bytes.byteLength) return false;
    if (head.kind === "schema") {
      if (check !== undefined) throw malformed(position, "there is a second schema");
      check = createBodyCheck(decodeSchema(metadata), maxBytes);
      schemaAt = [metadataAt, bodyAt];
    } else {
      if (check === undefined) throw malformed(position, "a message comes before the schema");
      check.add(head, metadata, bytes.subarray(bodyAt, end), position);
      const offset = FILE_HEAD_BYTES + position;
      blocks[head.kind].push({ offset, metadataLength: bodyAt - position, bodyLength: head.bodyLength });
    }
    position = end;
    return true;
  }
  return {
    /** Goes on as far as whole messages have arrived. */
    advance(bytes: Buffer): void {
      while (!ended && next(bytes)) {}
    },
    /** What the stream consists of, once all its bytes have arrived. */
    finish(bytes: Buffer): StreamParts {
      if (check === undefined) throw malformed(position, "the stream ends before its schema is complete");
      if (!ended && position !== bytes.byteLength) {
        throw malformed(position, "the stream ends in the middle of a message");
      }
      return {
        end: position,
        dictionaries: blocks.dictionary,
        batches: blocks.batch,
        schemaMetadata: bytes.subarray(...schemaAt),
        schema: check.schema,
        rows: check.rows,
      };
    },
  };
}
