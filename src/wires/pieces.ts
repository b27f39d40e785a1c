/** Returns the number of bytes of a body in pieces. */
export function bytesIn(pieces: readonly Uint8Array[]): number {
  return pieces.reduce((sum, { byteLength }) => sum + byteLength, 0);
}
