import assert from "node:assert/strict";
import { test } from "vitest";
import { ArrivingBytes } from "./arriving-bytes.ts";

test("bytes in pieces are joined, and a single piece is not copied", () => {
  const bytes = new ArrivingBytes();
  assert.equal(bytes.whole().length, 0);
  const first = Buffer.from("abc");
  bytes.push(first);
  assert.equal(bytes.whole().buffer, first.buffer);
  for (const piece of ["", "d", "x".repeat(5000), "e"]) bytes.push(Buffer.from(piece));
  assert.equal(bytes.whole().toString(), `abcd${"x".repeat(5000)}e`);
  assert.equal(bytes.size, 5005);
  assert.equal(first.toString(), "abc");
});

test("pieces of a byte take no memory of their own", () => {
  const bytes = new ArrivingBytes();
  const piece = Buffer.from("a");
  for (let count = 0; count < 100_000; count++) bytes.push(piece);
  assert.equal(bytes.whole().toString(), "a".repeat(100_000));
  assert.ok(bytes.whole().buffer.byteLength <= 200_000);
});
