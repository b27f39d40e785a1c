import { deflateSync, gzipSync } from "node:zlib";
import type { Random } from "./random.ts";

const HEAD_BYTES = 5;
const PACK = { none: (data: Buffer) => data, gzip: gzipSync, deflate: deflateSync } as const;

/**
 * Draws the bytes of a body of gRPC, in pieces cut anywhere: usually one message, sometimes more or none, with flags and lengths that
 * may lie.
 *
 * @param encoding the encoding that the headers announce
 */
export function randomFrames(
  random: Random,
  messages: readonly Buffer[],
  encoding: string | undefined,
): readonly Buffer[] {
  const chance = (one: number) => random.below(one) === 0;
  const packing =
    encoding === "gzip" || encoding === "deflate" ? encoding : random.pick(["gzip", "none"] as const);
  const frames = Array.from({ length: random.pick([0, 1, 1, 1, 1, 1, 1, 1, 2, 3]) }, () => {
    const odd = chance(25) ? random.pick([2, 3, 128, 255]) : undefined;
    const isPacked = odd === undefined && chance(encoding === undefined ? 20 : 2);
    const message = random.pick(messages);
    const data = isPacked ? PACK[packing](message) : message;
    const lie = chance(12) ? random.pick([-2, -1, 1, 5, 2 ** 31]) : 0;
    const head = Buffer.alloc(HEAD_BYTES, odd ?? Number(isPacked));
    head.writeUInt32BE(Math.max(0, data.length + lie), 1);
    return Buffer.concat([head, data]);
  });
  const bytes = Buffer.concat(frames);
  const cuts = Array.from({ length: random.below(4) }, () => random.below(bytes.length + 1));
  cuts.sort((a, b) => a - b);
  return [0, ...cuts].map((from, index) => bytes.subarray(from, cuts[index]));
}

/** Counts the messages that a body has in whole, and says whether it ends inside of another one. */
export function messagesIn(pieces: readonly Buffer[]): {
  readonly messages: number;
  readonly isCut: boolean;
} {
  const bytes = Buffer.concat(pieces);
  let [messages, at] = [0, 0];
  while (at + HEAD_BYTES <= bytes.length) {
    const end = at + HEAD_BYTES + bytes.readUInt32BE(at + 1);
    if (end > bytes.length) break;
    messages += 1;
    at = end;
  }
  return { messages, isCut: at < bytes.length };
}
