/** Memory for the rows of a catalog. */
export interface Memory {
  /** Number of bytes that have been taken, including what is unused by now. */
  readonly taken: number;
  /** Returns new memory, in which everything is 0. */
  take(bytes: number): ArrayBufferLike;
}

/**
 * Creates memory.
 *
 * @param isShared whether other threads may read it. The collector counts shared memory for no thread, so only
 *   workers use it.
 */
export function createMemory(isShared = false): Memory {
  let taken = 0;
  return {
    get taken() {
      return taken;
    },
    take(bytes) {
      taken += bytes;
      return isShared ? new SharedArrayBuffer(bytes) : new ArrayBuffer(bytes);
    },
  };
}

/** Memory in a few large pieces, each of which is freed only as a whole. */
interface Arena {
  readonly chunks: readonly Buffer[];
  /** Total number of reserved bytes in pieces that are not freed. */
  readonly bytes: number;
  /** Whether it began with the chunks of another arena. */
  readonly isForeign: boolean;
  /** Reserves memory; `chunk` and `at` give its position until the next call. */
  reserve(length: number): void;
  readonly chunk: number;
  readonly at: number;
  /** Ends the pieces so far: nothing more is reserved in them. */
  seal(): SealedPieces;
}

/** Pieces of an arena in which nothing more is reserved. */
export interface SealedPieces {
  includes(chunk: number): boolean;
  free(): void;
}

/** The content of an arena, which it never changes. */
export interface SharedArena {
  readonly chunks: readonly Uint8Array[];
  readonly bytes: number;
}

const CHUNK_BYTES = 1024 * 1024;
const FREED = Buffer.alloc(0);

/**
 * Creates an arena, which allocates no memory before the first bytes.
 *
 * @param content bytes of another arena, to which it adds chunks of its own. Default: none.
 */
export function createArena(memory: Memory, content?: SharedArena): Arena {
  const chunks = (content?.chunks ?? []).map(({ buffer }) => Buffer.from(buffer));
  // Only the other arena adds to its last chunk.
  let [end, size] = [0, 0];
  /** Numbers of freed chunks. */
  const vacant: number[] = [];
  let number = 0;
  const arena = {
    chunks,
    bytes: content?.bytes ?? 0,
    isForeign: content !== undefined,
    chunk: 0,
    at: 0,
    reserve(length: number) {
      if (size === 0 || length > size - end) {
        size = Math.max(CHUNK_BYTES, length);
        number = vacant.pop() ?? chunks.length;
        chunks[number] = Buffer.from(memory.take(size));
        end = 0;
      }
      arena.chunk = number;
      arena.at = end;
      arena.bytes += length;
      end += length;
    },
    seal() {
      const sealed = new Set(chunks.keys());
      for (const each of vacant) sealed.delete(each);
      const { bytes } = arena;
      size = 0;
      return {
        includes: (chunk: number) => sealed.has(chunk),
        free() {
          for (const each of sealed) chunks[each] = FREED;
          vacant.push(...sealed);
          arena.bytes -= bytes;
        },
      };
    },
  };
  return arena;
}

/** Copies bytes; for a few of them a loop costs less than a call into the JavaScript engine. */
export function copyBytes(
  source: Uint8Array,
  start: number,
  end: number,
  target: Uint8Array,
  at: number,
): void {
  if (end - start > 64) {
    target.set(source.subarray(start, end), at);
    return;
  }
  for (let i = start, to = at; i < end; i++, to++) target[to] = source[i] as number;
}
