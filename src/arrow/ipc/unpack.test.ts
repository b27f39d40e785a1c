import assert from "node:assert/strict";
import { test } from "vitest";
import { PYARROW_STREAMS } from "../../../test/fixtures/arrow/pyarrow-streams.ts";
import { messagesIn } from "../../../test/fixtures/arrow/upload.ts";
import { lz4Zeros } from "../../../test/support/hostile-arrow.ts";
import { STRUCT_BYTES } from "./arrays.ts";
import { type FlatTable, readLength, readTable, readVector, rootTable } from "./flatbuffer.ts";
import { checkLz4Frame, unpack } from "./unpack.ts";

/** Returns the compressed buffers of the only batch of a stream, each with its unpacked size. */
function buffersOf(codec: "lz4" | "zstd") {
  const message = Buffer.from(
    messagesIn(Buffer.from(PYARROW_STREAMS[codec], "base64")).data[0] as Uint8Array,
  );
  const bodyAt = 8 + message.readUInt32LE(4);
  const batch = readTable(rootTable(message.subarray(8, bodyAt)), 2) as FlatTable;
  const { at, length } = readVector(batch, 2, STRUCT_BYTES);
  const places = Array.from({ length }, (_, i) => at + i * STRUCT_BYTES);
  return places.flatMap((place) => {
    const [start, bytes] = [readLength(batch.view, place), readLength(batch.view, place + 8)];
    const packed = message.subarray(bodyAt + start, bodyAt + start + bytes);
    return bytes === 0 ? [] : [{ size: Number(packed.readBigInt64LE()), packed: packed.subarray(8) }];
  });
}

test("buffers in LZ4 and in ZSTD unpack to the same values", () => {
  const [lz4, zstd] = [buffersOf("lz4"), buffersOf("zstd")];
  assert.ok(lz4.length > 0);
  const plain = lz4.map(({ packed, size }) => Buffer.from(unpack("lz4", packed, size)));
  assert.deepEqual(
    plain,
    zstd.map(({ packed, size }) => Buffer.from(unpack("zstd", packed, size))),
  );
  assert.match(String(plain.at(-1)), /^same text 0same text 1/);
  const zeros = unpack("lz4", Buffer.concat([lz4Zeros(2), lz4Zeros(1)]), 3 * 65_536);
  assert.ok(zeros.every((byte) => byte === 0));
});

test("buffers of another size than they say, cut off or changed are refused", () => {
  for (const codec of ["lz4", "zstd"] as const) {
    const { packed, size } = buffersOf(codec).at(-1) as { packed: Buffer; size: number };
    for (const wrong of [size - 1, size + 1]) assert.throws(() => unpack(codec, packed, wrong), RangeError);
    for (let end = 0; end < packed.length - 8; end++) {
      assert.throws(() => {
        if (codec === "lz4") checkLz4Frame(packed.subarray(0, end), size);
        unpack(codec, packed.subarray(0, end), size);
      }, RangeError);
    }
    for (let at = 0; at < packed.length; at++) {
      const changed = Buffer.from(packed);
      changed[at] = (changed[at] as number) ^ 0xff;
      try {
        if (codec === "lz4") checkLz4Frame(changed, size);
        assert.equal(unpack(codec, changed, size).byteLength, size);
      } catch (error) {
        assert.ok(error instanceof RangeError, String(error));
      }
    }
  }
});
