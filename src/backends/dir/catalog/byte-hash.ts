import { randomInt } from "node:crypto";

/** A hash of 32 bits of a piece of bytes. */
export type ByteHash = (bytes: Uint8Array, start: number, end: number) => number;

/** Creates a hash that differs from process to process, so that names that collide cannot be prepared. */
export function createByteHash(seed = randomInt(2 ** 32)): ByteHash {
  return (bytes, start, end) => {
    let hash = seed | 0;
    for (let i = start; i < end; i++) {
      hash = Math.imul(hash ^ (bytes[i] as number), 0x0100_0193);
      hash ^= hash >>> 13;
    }
    hash = Math.imul(hash ^ (hash >>> 16), 0x85eb_ca6b);
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2_ae35);
    return hash ^ (hash >>> 16);
  };
}
