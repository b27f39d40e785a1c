import { createLoopPace } from "./loop-pace.ts";

/** Memory below this size, in bytes, is left to the collector: accounting for it would cost more. */
export const WORTH_FREEING_BYTES = 16 * 1024;

/**
 * Frees bytes that are no longer read, if they do not share their memory. Otherwise, the chunks of a long body would
 * cause one full garbage collection after the other, and the memory that growing bodies have left would stay beside
 * them, where no budget counts it.
 */
export function freeAtOnce({ buffer, byteLength }: Uint8Array): void {
  // Empty buffers are shared constants.
  const isWhole = buffer.byteLength === byteLength && byteLength > 0;
  if (isWhole && buffer instanceof ArrayBuffer && !buffer.resizable) buffer.transfer(0);
}

const frees = createLoopPace();

/** Frees much memory in its turn of the event loop: unmapping what hundreds of cut uploads have left takes longer than a turn may. */
export async function freeInTurn(free: () => void): Promise<void> {
  if (!frees.enter()) await frees.turn();
  free();
}
