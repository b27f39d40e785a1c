/** Whether a bit is set. */
export function isSet(bits: Uint8Array, at: number): boolean {
  return (((bits[at >> 3] ?? 0) >> (at & 7)) & 1) === 1;
}
