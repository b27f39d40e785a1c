import assert from "node:assert/strict";
import { test } from "vitest";
import { bytesInViews } from "./arrays.ts";

test("views count the values outside of them that are not null", () => {
  const views = Buffer.alloc(64);
  for (const [i, size] of [12, 13, 0xffffffff, 1000].entries()) views.writeUInt32LE(size, i * 16);
  assert.equal(bytesInViews(views, 4, undefined), 13 + 0xffffffff + 1000);
  assert.equal(bytesInViews(views, 4, Uint8Array.of(0b1011)), 1013);
  assert.equal(bytesInViews(views, 2, Uint8Array.of(0b1111)), 13);
});
