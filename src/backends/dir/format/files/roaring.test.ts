import assert from "node:assert/strict";
import { inflateSync } from "node:zlib";
import { test } from "vitest";
import { encodeRoaring, readRoaring } from "./roaring.ts";

// These bytes come from CRoaring.
const bytesOf = (base64: string) => new Uint8Array(Buffer.from(base64, "base64"));
const ARRAYS = "OjAAAAIAAAAAAAEAAQABABgAAAAcAAAAAQAFAHARchE=";
const RUNS = "OzAEAA0AAN0DAgAAAAMAYwAGAAkA//8AAC0AAAAzAAAANQAAADsAAABBAAAAAQAKAN0DAAABAEANYwABAIAaCQD//w==";
const BITMAP = inflateSync(bytesOf("eNrtxLERABAABLA3AVto1faw/ypobeAuKTJHUnLV3s4LAIDvBAAAAAAAHhtx4T7z"));

test("finds numbers in containers of arrays", () => {
  const contains = readRoaring(bytesOf(ARRAYS));
  const found = [0, 1, 2, 5, 6, 65_537, 70_000, 70_001, 70_002].filter(contains);
  assert.deepEqual(found, [1, 5, 70_000, 70_002]);
});

test("finds numbers in containers of runs", () => {
  const contains = readRoaring(bytesOf(RUNS));
  const within = [10, 999, 131_072, 200_000, 200_099, 400_009, 0xffff_ffff];
  assert.deepEqual(within.filter(contains), within);
  assert.deepEqual([9, 1000, 131_073, 199_999, 200_100, 400_010, 0xffff_fffe].filter(contains), []);
});

test("finds numbers in containers of bits", () => {
  const contains = readRoaring(new Uint8Array(BITMAP));
  const found = Array.from({ length: 70_000 }, (_, i) => i).filter(contains);
  assert.deepEqual(
    found,
    Array.from({ length: 10_000 }, (_, i) => 2 * i),
  );
});

test("refuses bytes that are cut off or no bitmap", () => {
  for (const bytes of [bytesOf(ARRAYS), bytesOf(RUNS), new Uint8Array(BITMAP)])
    for (const length of [0, 3, 7, 11, bytes.byteLength - 1])
      assert.throws(() => readRoaring(bytes.subarray(0, length)), RangeError);
  assert.throws(() => readRoaring(new Uint8Array(64)), RangeError);
});

test("writes what it reads", () => {
  assert.deepEqual(encodeRoaring([70_000, 1, 5, 70_002]), Buffer.from(bytesOf(ARRAYS)));
  const even = Array.from({ length: 10_000 }, (_, i) => 2 * i);
  for (const numbers of [[], [0], [0xffff_ffff], even, [...even, 1_000_000]]) {
    const contains = readRoaring(encodeRoaring(numbers));
    assert.equal(numbers.every(contains), true);
    assert.equal(contains(3), false);
  }
});
