import assert from "node:assert/strict";
import { test } from "vitest";
import { createReclaimer } from "./receiver.ts";

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
