import { LanceError } from "../../namespace/errors.ts";
import { freeAtOnce, freeInTurn } from "../../runtime/byte-memory.ts";
import { createPace } from "../../runtime/pace.ts";
import { scanIpcFile } from "../ipc/file-scan.ts";
import { isIpcFile } from "../ipc/ipc-forms.ts";
import { emptyBody, FILE_MAGIC } from "../ipc/message.ts";
import { createPartBuffer, type PartBuffer, type PartBufferPool } from "../ipc/part-buffer.ts";
import { createStreamScanner } from "../ipc/stream-scanner.ts";
import type { ArrowSchema } from "../schema.ts";

/** Options of {@link collectUpload}. */
export interface UploadOptions {
  /** Largest upload, and largest sum of its unpacked buffers, in bytes. */
  readonly maxBytes: number;
  /** Ends the upload with LanceError Cancelled. */
  readonly signal?: AbortSignal;
  /**
   * Takes the memory that the engine needs for a part beyond the received bytes, in bytes: the unpacked size of its
   * compressed buffers, and what short values in lists need. An error that it throws ends the upload. Default: the memory is not counted.
   */
  readonly hold?: (bytes: number) => void;
}

/** Options of {@link readUpload}. */
export interface PartOptions extends UploadOptions {
  /** Size that ends a part, in bytes. */
  readonly partBytes: number;
  /**
   * Called once, when the first part has its size: whether there may be another. Otherwise the part takes the whole
   * body.
   */
  readonly mayCut?: () => Promise<boolean>;
  /** Whether the memory of chunks may be freed at once, instead of when it is collected. Default: false. */
  readonly ownsChunks?: boolean;
  /** Source of buffers, which return to it when the iteration ends; the parts must not be used after that. */
  readonly pool?: PartBufferPool;
}

/** A part of an upload, in the form that the engine takes. */
export interface UploadPart {
  /** The part as an Arrow IPC file; the second part after it reuses its memory. */
  readonly file: Buffer;
  readonly schema: ArrowSchema;
  readonly rows: number;
  /** Memory held for the part, in bytes: its bytes of the body, or what the engine needs for them if that is larger. */
  readonly heldBytes: number;
  /** Size of the texts to which indices of dictionaries refer, in bytes, which plain columns store. */
  readonly textBytes: number;
  /** Whether this is the last part. */
  readonly last: boolean;
}

/** An upload in a single part. */
export type Upload = Pick<UploadPart, "file" | "schema" | "rows" | "heldBytes" | "textBytes">;

/** Number of parts in use at once: one that is being written, and one that is arriving. */
const BUFFERS = 2;

/**
 * Collects an Arrow IPC stream, split anywhere, into a single IPC file, and checks it on the way.
 *
 * @throws LanceError as {@link readUpload}; Unsupported if a dictionary is replaced, which a file cannot represent.
 */
export async function collectUpload(
  chunks: AsyncIterable<Uint8Array>,
  options: UploadOptions,
): Promise<Upload> {
  for await (const part of readUpload(chunks, { ...options, partBytes: Number.POSITIVE_INFINITY })) {
    if (part.last) return part;
    throw new LanceError(
      "Unsupported",
      "a dictionary changes within the body; this operation takes one dictionary for each column",
    );
  }
  throw new Error("an upload has at least one part");
}

/**
 * Cuts an Arrow IPC stream, split anywhere, into IPC files of whole record batches, and checks it on the way.
 *
 * A file is the stream between a magic and a footer, so bytes are stored once, at their final position. Nothing is
 * decoded; compressed buffers pass unchanged. A part ends with the batch that makes it `partBytes` long, and where a
 * dictionary is replaced; each part repeats schema and dictionaries. An upload that is an IPC file already is checked
 * and passes as a single part.
 *
 * @throws LanceError InvalidInput for anything but a complete stream or file, with the position of the fault;
 *   PayloadTooLarge beyond the limit; Cancelled when the signal aborts.
 */
export async function* readUpload(
  chunks: AsyncIterable<Uint8Array>,
  options: PartOptions,
): AsyncGenerator<UploadPart, void> {
  const { maxBytes, pool } = options;
  const buffers: PartBuffer[] = [];
  /** The buffer of the part that is arriving, which nobody else reads. */
  let arriving: PartBuffer | undefined;
  const parts = readParts(chunks, options, (part) => {
    const index = part % BUFFERS;
    buffers[index] ??= pool?.take() ?? createPartBuffer(maxBytes);
    arriving = buffers[index];
    return arriving;
  });
  try {
    for await (const part of parts) {
      arriving = undefined;
      yield part;
    }
  } finally {
    for (const buffer of buffers) {
      const isKept = pool?.give(buffer) === true;
      if (!isKept && buffer === arriving) await freeInTurn(buffer.free);
    }
  }
}

async function* readParts(
  chunks: AsyncIterable<Uint8Array>,
  { maxBytes, partBytes, mayCut, ownsChunks = false, signal, hold }: PartOptions,
  bufferOf: (part: number) => PartBuffer,
): AsyncGenerator<UploadPart, void> {
  let current = bufferOf(0);
  const scanner = createStreamScanner(maxBytes, partBytes);
  let [parts, received, taken] = [0, 0, 0];
  const cancelled = () => {
    if (signal?.aborted) throw new LanceError("Cancelled", "the upload was cancelled");
  };
  /** Takes the memory that the part needs beyond its received bytes, and returns the memory held for it. */
  const held = (neededBytes: number) => {
    const bodyBytes = received - taken;
    taken = received;
    if (neededBytes > bodyBytes) hold?.(neededBytes - bodyBytes);
    return Math.max(neededBytes, bodyBytes);
  };
  const pace = createPace();
  const advance = () => scanner.advance(current, pace.isDue);
  let beginsAsFile: boolean | undefined;
  const isFile = () => {
    if (received < FILE_MAGIC.byteLength) return false;
    beginsAsFile ??= isIpcFile(current.bytes);
    return beginsAsFile;
  };

  for await (const chunk of chunks) {
    cancelled();
    received += chunk.byteLength;
    if (received > maxBytes) {
      throw new LanceError("PayloadTooLarge", `body is larger than ${maxBytes} bytes`);
    }
    current.append(chunk);
    if (ownsChunks) freeAtOnce(chunk);
    if (received < FILE_MAGIC.byteLength || isFile()) continue;
    pace.begin();
    for (let reason = advance(); reason !== undefined; reason = advance()) {
      if (reason === "pause") {
        await pace.pause();
        cancelled();
        continue;
      }
      if (reason === "size" && parts === 0 && mayCut !== undefined && !(await mayCut())) {
        scanner.ignoreSize();
        continue;
      }
      const { begin, neededBytes, ...part } = scanner.cut(current);
      yield { ...part, schema: scanner.schema, heldBytes: held(neededBytes), last: false };
      cancelled();
      // Only when the caller asks for it: until then it may still use the part before the one it got.
      current = bufferOf(++parts);
      begin(current);
    }
  }
  cancelled();
  if (received === 0) throw emptyBody();
  if (isFile()) {
    const file = current.bytes;
    const { neededBytes, ...scanned } = await scanIpcFile(file, maxBytes);
    yield { file, ...scanned, heldBytes: held(neededBytes), last: true };
    return;
  }
  const { neededBytes, ...part } = scanner.finish(current);
  yield { ...part, schema: scanner.schema, heldBytes: held(neededBytes), last: true };
}
