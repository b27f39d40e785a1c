import assert from "node:assert/strict";
import { test } from "vitest";
import { changingDictionaries, LIMIT, split } from "../../../test/fixtures/arrow/upload.ts";
import type { MessageHead } from "../ipc/message.ts";
import type { ArrowField } from "../schema.ts";
import { createDictionaryTexts, hasSizes, sizesOf } from "./dictionary-texts.ts";
import { collectUpload, readUpload } from "./upload.ts";

const head = (isDelta: boolean): MessageHead => ({
  ...{ kind: "dictionary", version: 4, bodyLength: 0, rows: 0 },
  ...{ dictionaryId: 1n, isDelta, isCompressed: false },
});
const column = (bits: 8 | 16 | 32 | 64): ArrowField => ({
  ...{ name: "c", nullable: true, type: { name: "utf8" }, children: [], metadata: {} },
  dictionary: { id: 1n, index: { name: "int", bits, signed: true }, ordered: false },
});

test("indices count the texts to which they refer, also those that were added or replaced", () => {
  const texts = createDictionaryTexts();
  const size = (indices: ArrayLike<number>, bits: 8 | 16 | 32 | 64 = 8) => {
    const values = { 8: Uint8Array, 16: Uint16Array, 32: Uint32Array, 64: BigUint64Array }[bits];
    const made =
      bits === 64 ? BigUint64Array.from(Array.from(indices, BigInt)) : new values(indices as never);
    return texts.sizeOf(column(bits), 0, indices.length, () => new Uint8Array(made.buffer));
  };
  assert.equal(texts.has(column(8)), false);
  texts.add(head(false), [1, 10]);
  assert.equal(texts.has(column(8)), true);
  for (const bits of [8, 16, 32, 64] as const) assert.equal(size([0, 1, 1, 9], bits), 21);
  texts.add(head(true), [100]);
  assert.equal(size([0, 2]), 101);
  texts.add(head(false), [5]);
  assert.equal(size([0, 1, 2]), 5);
});

test("more indices than are read count as the longest text, and more texts are refused", () => {
  const texts = createDictionaryTexts();
  texts.add(head(false), [1, 10]);
  const unread = () => assert.fail("the indices are read");
  assert.equal(texts.sizeOf(column(8), 1, 8 * 1024 * 1024, unread), 80 * 1024 * 1024);
  assert.throws(() => sizesOf("utf8", unread, 8 * 1024 * 1024 + 1), RangeError);
});

test("the sizes of texts follow from their offsets or views", () => {
  const bytes = (values: ArrayBufferView) => () => new Uint8Array(values.buffer as ArrayBuffer);
  assert.deepEqual(sizesOf("utf8", bytes(Int32Array.of(2, 2, 5)), 2), [0, 3]);
  assert.deepEqual(sizesOf("large_binary", bytes(BigInt64Array.of(0n, 7n, 8n)), 2), [7, 1]);
  assert.deepEqual(sizesOf("utf8_view", bytes(Int32Array.of(3, 0, 0, 0, 20, 0, 0, 0)), 2), [3, 20]);
  assert.deepEqual(
    [hasSizes("binary_view"), hasSizes("fixed_size_binary"), hasSizes("int")],
    [true, false, false],
  );
});

test("an upload says how long the texts of its dictionaries are in each part", async () => {
  const sizes: number[] = [];
  for await (const part of readUpload(split(await changingDictionaries(), []), { ...LIMIT, partBytes: 1 }))
    sizes.push(part.textBytes);
  // Two rows of a letter in each of two columns.
  assert.deepEqual(sizes, [4, 4, 4, 4]);
  await assert.rejects(collectUpload(split(await changingDictionaries(), []), LIMIT), /a dictionary changes/);
});
