import { isMarkedAsUntransferable } from "node:worker_threads";
import { WORTH_FREEING_BYTES } from "../../arrow/memory.ts";

/**
 * Takes back the memory that a socket was read into, behind the reader of a body: each call says that a piece, and all
 * pieces before it, are no longer in use. Left to the collector, which begins when there are 64 MiB of it, a long body
 * would grow the process by that.
 *
 * Pieces of one read share its memory, and undici goes on with it until it has given them all: it is done with it when a
 * piece of the next read has come. The connection must be of one answer at a time.
 */
export function createReclaimer(): (piece: Uint8Array) => void {
  let last: ArrayBufferLike | undefined;
  return ({ buffer }) => {
    if (last !== undefined && last !== buffer) free(last);
    last = buffer;
  };
}

function free(memory: ArrayBufferLike): void {
  // An empty piece lies in a buffer that all connections have in common, a small one may lie in Node's pool.
  if (memory.byteLength < WORTH_FREEING_BYTES || isMarkedAsUntransferable(memory)) return;
  if (memory instanceof ArrayBuffer) memory.transfer(0);
}
