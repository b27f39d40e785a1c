import { type Block, fileTail } from "./footer.ts";
import { FILE_MAGIC, MAX_METADATA_BYTES, type MessageKind, malformed } from "./message.ts";

/** The magic of a file is padded, so that messages begin at a multiple of eight. */
export const FILE_HEAD_BYTES = 8;

/** The most messages of one file. */
export const MAX_FILE_MESSAGES = 262_144;

/** The room for the footer: a repetition of the schema and the places of the messages. */
const MAX_TAIL_BYTES = 2 * MAX_METADATA_BYTES;

/**
 * The sizes up to which memory grows in place, in bytes; past one, what there is moves to the next. A reserved
 * range counts for the garbage collector as if it were used, so that small uploads must not reserve much.
 */
const STEPS = [4 * 1024 * 1024, 128 * 1024 * 1024, Number.POSITIVE_INFINITY] as const;

/** How far the memory grows beyond what has arrived, in bytes. */
const GROWTH_BYTES = 1024 * 1024;

/**
 * The bytes of one IPC file while they arrive: they are stored at their final place, in memory that grows
 * nearly without being copied. Places count from behind the file's magic, as in a stream.
 */
export interface PartBuffer {
  /** The bytes that have arrived. */
  readonly length: number;
  readonly bytes: Buffer;
  append(chunk: Uint8Array): void;
  /** Notes a message that is complete, for the footer. @throws LanceError InvalidInput, when there are too many. */
  note(
    kind: Exclude<MessageKind, "schema">,
    position: number,
    metadataLength: number,
    bodyLength: number,
  ): void;
  /** Whether a batch has been noted. */
  readonly hasBatch: boolean;
  /** How many messages have been noted. */
  readonly messages: number;
  /** Writes the footer behind the first `end` bytes, over what may follow them; the whole file. */
  seal(end: number, schemaMetadata: Uint8Array): Buffer;
  /** Empties the buffer; what `seal` gave is overwritten by what comes next. */
  reset(): void;
  /** Whether it is no larger than a small upload needs. */
  readonly isSmall: boolean;
}

/** Buffers of small uploads, for the next ones: new memory for each would keep the garbage collector busy. */
export interface PartBufferPool {
  take(): PartBuffer;
  give(buffer: PartBuffer): void;
}

/** The buffers that a pool keeps, at most. */
const POOLED = 8;

/** Creates a pool of buffers for files of up to `maxBytes`. */
export function createPartBufferPool(maxBytes: number): PartBufferPool {
  const free: PartBuffer[] = [];
  return {
    take: () => free.pop() ?? createPartBuffer(maxBytes),
    give(buffer) {
      if (!buffer.isSmall || free.length >= POOLED) return;
      buffer.reset();
      free.push(buffer);
    },
  };
}

/** Creates a buffer for files of up to `maxBytes`, without head and footer. */
export function createPartBuffer(maxBytes: number): PartBuffer {
  const limit = FILE_HEAD_BYTES + maxBytes + MAX_TAIL_BYTES;
  let memory = new ArrayBuffer(0);
  let [length, messages] = [0, 0];
  let blocks = { dictionary: [] as Block[], batch: [] as Block[] };

  function reserve(bytes: number): void {
    if (bytes <= memory.byteLength) return;
    if (bytes > memory.maxByteLength) {
      const step = STEPS.find((size) => size >= bytes) ?? limit;
      const larger = new ArrayBuffer(memory.byteLength, { maxByteLength: Math.min(step, limit) });
      new Uint8Array(larger).set(new Uint8Array(memory));
      memory = larger;
    }
    memory.resize(Math.min(memory.maxByteLength, bytes + GROWTH_BYTES));
  }
  return {
    get length() {
      return length;
    },
    get bytes() {
      return Buffer.from(memory, Math.min(FILE_HEAD_BYTES, memory.byteLength), length);
    },
    append(chunk) {
      reserve(FILE_HEAD_BYTES + length + chunk.byteLength);
      new Uint8Array(memory, FILE_HEAD_BYTES + length).set(chunk);
      length += chunk.byteLength;
    },
    note(kind, position, metadataLength, bodyLength) {
      messages += 1;
      if (messages > MAX_FILE_MESSAGES) throw malformed(position, "there are too many record batches");
      blocks[kind].push({ offset: FILE_HEAD_BYTES + position, metadataLength, bodyLength });
    },
    get messages() {
      return messages;
    },
    get hasBatch() {
      return blocks.batch.length > 0;
    },
    seal(end, schemaMetadata) {
      const tail = fileTail(schemaMetadata, blocks.dictionary, blocks.batch);
      reserve(FILE_HEAD_BYTES + end + tail.byteLength);
      const file = Buffer.from(memory, 0, FILE_HEAD_BYTES + end + tail.byteLength);
      file.set(FILE_MAGIC);
      file.set(tail, FILE_HEAD_BYTES + end);
      return file;
    },
    reset() {
      [length, messages] = [0, 0];
      blocks = { dictionary: [], batch: [] };
    },
    get isSmall() {
      return memory.maxByteLength <= STEPS[0];
    },
  };
}
