import assert from "node:assert/strict";
import { Int32, Table, tableFromIPC, tableToIPC, vectorFromArray } from "apache-arrow";
import fc from "fast-check";
import { test, vi } from "vitest";
import {
  changingDictionaries,
  LIMIT,
  messagesOf,
  rowsOf,
  split,
  tables,
} from "../../../test/fixtures/arrow/upload.ts";
import { isLanceError } from "../../namespace/errors.ts";
import { LOOP, TURN_MS } from "../../runtime/loop-pace.ts";
import { createPartBufferPool } from "../ipc/part-buffer.ts";
import { END_OF_STREAM } from "../ipc/stream.ts";
import { collectUpload, readUpload } from "./upload.ts";

test("an upload is cut into files of whole batches, with schema and dictionaries in each", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(tables, { minLength: 1, maxLength: 4 }),
      fc.array(fc.nat()),
      fc.nat(3000),
      async (parts, cuts, partBytes) => {
        const messages = await Promise.all(parts.map(messagesOf));
        const data = messages.flatMap((message) => message.data);
        const stream = Buffer.concat([messages[0]?.schema as Uint8Array, ...data, END_OF_STREAM]);
        const found: string[] = [];
        let [rows, bytes, more] = [0, 0, 0];
        let last = false;
        const hold = (unpacked: number) => {
          more += unpacked;
        };
        for await (const part of readUpload(split(stream, cuts), { ...LIMIT, partBytes, hold })) {
          assert.equal(last, false);
          found.push(...rowsOf(part.file).slice(1));
          rows += part.rows;
          bytes += part.heldBytes;
          last = part.last;
        }
        assert.equal(last, true);
        assert.equal(bytes, stream.byteLength + more);
        assert.equal(rows, found.length);
        assert.deepEqual(
          found,
          parts.flatMap((part) => rowsOf(tableToIPC(part, "stream")).slice(1)),
        );
      },
    ),
    { numRuns: 60 },
  );
});

test("a dictionary that changes ends a part, and an upload that must be one file", async () => {
  const stream = await changingDictionaries();
  const words: string[] = [];
  for await (const { file } of readUpload(split(stream, [77]), { ...LIMIT, partBytes: 1e9 })) {
    words.push(...(tableFromIPC(file).getChild("d") ?? []));
  }
  assert.deepEqual(words, ["a", "b", "x", "a", "a", "b", "x", "a"]);
  await assert.rejects(collectUpload(split(stream, []), LIMIT), (error) =>
    isLanceError(error, "Unsupported"),
  );
});

test("an upload that may not be cut is one part, whatever its size", async () => {
  const { schema, data } = await messagesOf(new Table({ id: vectorFromArray([1, 2, 3], new Int32()) }));
  const stream = Buffer.concat([schema, ...data, ...data, ...data, END_OF_STREAM]);
  const pool = createPartBufferPool(LIMIT.maxBytes);
  for (let round = 0; round < 3; round++) {
    let asked = 0;
    const mayCut = async () => {
      asked++;
      return false;
    };
    const parts = [];
    for await (const { rows, last } of readUpload(split(stream, [9]), {
      ...LIMIT,
      partBytes: 1,
      mayCut,
      pool,
    })) {
      parts.push([rows, last]);
    }
    assert.deepEqual(parts, [[9, true]]);
    assert.equal(asked, 1);
  }
});

test("uploads that are cut at the same time free their memory in different turns of the event loop", async ({
  onTestFinished,
}) => {
  const { transferToFixedLength } = ArrayBuffer.prototype;
  const turns: number[] = [];
  const free = vi.spyOn(ArrayBuffer.prototype, "transferToFixedLength");
  free.mockImplementation(function (this: ArrayBuffer, length) {
    if (this.byteLength > 0) {
      turns.push(LOOP.turn());
      const end = performance.now() + TURN_MS;
      while (performance.now() < end);
    }
    return transferToFixedLength.call(this, length);
  });
  onTestFinished(() => free.mockRestore());
  async function* cutUpload() {
    yield END_OF_STREAM.subarray(0, 4);
    throw new Error("cut");
  }
  const uploads = Array.from({ length: 5 }, () => assert.rejects(collectUpload(cutUpload(), LIMIT), /cut/));
  await Promise.all(uploads);
  assert.equal(turns.length, 5);
  assert.equal(new Set(turns).size, 5);
});
