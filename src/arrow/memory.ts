/** Memory of fewer bytes than this is left to the collector: keeping account of it would cost more. */
export const WORTH_FREEING_BYTES = 16 * 1024;

/**
 * Frees bytes that nobody reads any more, where they have their memory for themselves. Left to the collector, the
 * chunks of a long body would start one full collection after the other.
 */
export function freeAtOnce({ buffer, byteLength }: Uint8Array): void {
  // Empty buffers are shared as constants.
  const isWhole = buffer.byteLength === byteLength && byteLength > 0;
  if (isWhole && buffer instanceof ArrayBuffer && !buffer.resizable) buffer.transfer(0);
}
