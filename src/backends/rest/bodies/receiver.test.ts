import assert from "node:assert/strict";
import { test } from "vitest";
import { CollectedBody, createReclaimer } from "./receiver.ts";

const READ_BYTES = 64 * 1024;
const isFreed = ({ buffer }: Uint8Array) => (buffer as ArrayBuffer).detached;

/** A buffer as a socket reads it. */
const read = () => Buffer.from(new ArrayBuffer(READ_BYTES));

test("frees the memory of a read when a piece of the next read is done", () => {
  const [first, second] = [read(), read()];
  const reclaim = createReclaimer();
  reclaim(first.subarray(0, 100));
  reclaim(first.subarray(100));
  assert.equal(isFreed(first), false, "undici may have more of it");
  reclaim(second.subarray(0, 10));
  assert.equal(isFreed(first), true);
  assert.equal(isFreed(second), false);
});

test("buffers that others share are never freed", () => {
  const [empty, pooled] = [Buffer.alloc(0), Buffer.from("short")];
  const reclaim = createReclaimer();
  for (const piece of [empty, read(), pooled, read(), empty, pooled, read()]) reclaim(piece);
  assert.equal(isFreed(empty), false);
  assert.equal(pooled.toString(), "short");
});

const PIECES = Array.from({ length: 50 }, (_, i) => Buffer.alloc(i * 7, i));

for (const expected of [0, 3, Buffer.concat(PIECES).length, 100_000]) {
  test(`joins pieces, whose announced size is ${expected}`, () => {
    const body = new CollectedBody(expected);
    for (const piece of PIECES) body.add(piece);
    assert.deepEqual(body.bytes, Buffer.concat(PIECES));
  });
}

test("does not move what has arrived of a body whose size is announced", () => {
  const body = new CollectedBody(1000);
  body.add(Buffer.alloc(1));
  const { buffer } = body.bytes;
  body.add(Buffer.alloc(999));
  assert.equal(body.bytes.buffer, buffer);
});
