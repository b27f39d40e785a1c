import assert from "node:assert/strict";
import { Writable } from "node:stream";
import { expect, test } from "vitest";
import { freeAtOnce } from "../../runtime/byte-memory.ts";
import { BodyWriter } from "./body-writer.ts";
import type { RestResponse } from "./http.ts";

const KIB = 1024;

/** A response of HTTP/1.1 whose connection takes a piece when `take` is called. */
function slowResponse() {
  const taken: Buffer[] = [];
  let waiting: { readonly piece: Buffer; readonly done: () => void } | undefined;
  const stream = new Writable({
    write(piece: Buffer, _, done) {
      waiting = { piece, done };
    },
  });
  const response = Object.assign(stream, { req: { httpVersionMajor: 1 } }) as unknown as RestResponse;
  return {
    taken,
    writer: new BodyWriter(response, 0, () => {}),
    async take(count: number) {
      for (let left = count; left > 0; left--) {
        await expect.poll(() => waiting !== undefined).toBe(true);
        const { piece, done } = waiting as NonNullable<typeof waiting>;
        waiting = undefined;
        taken.push(Buffer.from(piece));
        done();
      }
    },
  };
}

test("small pieces wait for nothing, and their memory may be freed before the connection takes them", async () => {
  const { writer, taken, take } = slowResponse();
  for (const fill of [1, 2, 3]) {
    const piece = new Uint8Array(KIB).fill(fill);
    await writer.write(piece);
    freeAtOnce(piece);
  }
  await take(3);
  assert.deepEqual(
    taken.map((piece) => [piece.byteLength, piece[0], piece.at(-1)]),
    [1, 2, 3].map((fill) => [KIB, fill, fill]),
  );
});

test("a piece waits for the connection when small ones before it have 64 KiB, and again when it is large", async () => {
  const { writer, take } = slowResponse();
  for (let piece = 0; piece < 64; piece++) await writer.write(new Uint8Array(KIB));
  let written = 0;
  const count = () => void written++;
  const next = writer.write(new Uint8Array(KIB)).then(count);
  await take(64);
  assert.equal(written, 0);
  await take(1);
  await next;
  const large = writer.write(new Uint8Array(65 * KIB)).then(count);
  await expect.poll(() => written).toBe(1);
  await take(1);
  await large;
  assert.equal(written, 2);
});
