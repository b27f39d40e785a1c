/** Memory in a few large pieces; it is freed only as a whole. */
export interface Arena {
  readonly chunks: readonly Buffer[];
  /** Total number of reserved bytes. */
  readonly bytes: number;
  /** Reserves memory; `chunk` and `at` give its position until the next call. */
  reserve(length: number): void;
  readonly chunk: number;
  readonly at: number;
}

const CHUNK_BYTES = 1024 * 1024;

/** Creates an arena, which allocates no memory before the first bytes. */
export function createArena(): Arena {
  const chunks: Buffer[] = [];
  let end = 0;
  const arena = {
    chunks,
    bytes: 0,
    chunk: 0,
    at: 0,
    reserve(length: number) {
      const room = (chunks.at(-1)?.byteLength ?? 0) - end;
      if (length > room || chunks.length === 0) {
        chunks.push(Buffer.allocUnsafeSlow(Math.max(CHUNK_BYTES, length)));
        end = 0;
      }
      arena.chunk = chunks.length - 1;
      arena.at = end;
      arena.bytes += length;
      end += length;
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
