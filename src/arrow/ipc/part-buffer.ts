import {
  type Block,
  FILE_MAGIC,
  fileTail,
  MAX_METADATA_BYTES,
  type MessageKind,
  malformed,
} from "./message.ts";

/** The magic of a file is padded, so that messages begin at a multiple of eight. */
export const FILE_HEAD_BYTES = 8;

/** Maximum number of messages in a file. */
export const MAX_FILE_MESSAGES = 262_144;

/** Room for the footer: a repetition of the schema and the positions of the messages. */
const MAX_TAIL_BYTES = 2 * MAX_METADATA_BYTES;

const MIB = 1024 * 1024;

/**
 * Sizes up to which memory grows in place, in bytes; beyond one, the contents move to the next. The garbage collector
 * counts a reserved range as used, so uploads must not reserve much: neither small ones nor parts, which are about half of the second step long.
 */
const STEPS = [4 * MIB, 32 * MIB, 64 * MIB, 128 * MIB, Number.POSITIVE_INFINITY] as const;

/** How far the memory grows beyond the bytes that have arrived, in bytes. */
const GROWTH_BYTES = MIB;

/**
 * The bytes of an IPC file as they arrive. They are stored at their final position, in memory that grows with hardly
 * any copying. Positions count from behind the file's magic, as in a stream.
 */
export interface PartBuffer {
  /** Number of bytes that have arrived. */
  readonly length: number;
  readonly bytes: Buffer;
  append(chunk: Uint8Array): void;
  /**
   * Records a complete message for the footer.
   *
   * @throws LanceError InvalidInput, if there are too many.
   */
  note(
    kind: Exclude<MessageKind, "schema">,
    position: number,
    metadataLength: number,
    bodyLength: number,
  ): void;
  /** Whether a batch was recorded. */
  readonly hasBatch: boolean;
  /** Number of recorded messages. */
  readonly messages: number;
  /** Writes the footer after the first `end` bytes, over the bytes that may follow, and returns the whole file. */
  seal(end: number, schemaMetadata: Uint8Array): Buffer;
  /** Empties the buffer; the next contents overwrite the file that `seal` returned. */
  reset(): void;
  /** Frees the memory at once, instead of when it is collected; the buffer is not used after that. */
  free(): void;
  /** Whether the buffer is no larger than a small upload needs. */
  readonly isSmall: boolean;
}

/** Buffers of small uploads, for reuse: new memory for each would keep the garbage collector busy. */
export interface PartBufferPool {
  take(): PartBuffer;
  /** Takes a buffer back; returns false if the pool does not keep it. */
  give(buffer: PartBuffer): boolean;
}

/** Maximum number of buffers in a pool. */
const POOLED = 8;

/** Creates a pool of buffers for files of up to `maxBytes`. */
export function createPartBufferPool(maxBytes: number): PartBufferPool {
  const free: PartBuffer[] = [];
  return {
    take: () => free.pop() ?? createPartBuffer(maxBytes),
    give(buffer) {
      if (!buffer.isSmall || free.length >= POOLED) return false;
      buffer.reset();
      free.push(buffer);
      return true;
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
      free();
      memory = larger;
    }
    memory.resize(Math.min(memory.maxByteLength, bytes + GROWTH_BYTES));
  }
  function free(): void {
    memory = memory.transferToFixedLength(0);
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
    free,
    get isSmall() {
      return memory.maxByteLength <= STEPS[0];
    },
  };
}
