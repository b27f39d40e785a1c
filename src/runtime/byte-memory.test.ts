import assert from "node:assert/strict";
import { test } from "vitest";
import { ArrivingBytes } from "./byte-memory.ts";

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

test("memory that the bytes have outgrown is freed at once", () => {
  const piece = Buffer.alloc(64 * 1024, 1);
  const all: ArrivingBytes[] = [];
  const before = process.memoryUsage().arrayBuffers;
  for (let count = 0; count < 20; count++) {
    const bytes = new ArrivingBytes();
    // 4 MiB and a piece more, so that 4 MiB are left behind.
    for (let at = 0; at <= 64; at++) bytes.push(piece);
    all.push(bytes);
  }
  const held = all.reduce((sum, bytes) => sum + bytes.whole().buffer.byteLength, 0);
  assert.ok(process.memoryUsage().arrayBuffers - before < held + 1024 * 1024);
  assert.equal(piece.length, 64 * 1024);
});
