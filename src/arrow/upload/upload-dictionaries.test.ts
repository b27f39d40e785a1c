import assert from "node:assert/strict";
import { Dictionary, Int8, Int32, Table, tableFromIPC, Utf8, vectorFromArray } from "apache-arrow";
import { test } from "vitest";
import { changingDictionaries, join, messagesOf, split } from "../../../test/fixtures/arrow/upload.ts";
import { isLanceError } from "../../namespace/errors.ts";
import { toIpcFile } from "../ipc/file.ts";
import { END_OF_STREAM } from "../ipc/stream.ts";

test("several batches and repeated dictionaries make one file", async () => {
  const type = new Dictionary(new Utf8(), new Int32(), 1);
  const batch = new Table({ d: vectorFromArray(["a", "b"], type) });
  const { schema, data } = await messagesOf(batch);
  const stream = Buffer.concat([schema, ...data, ...data, END_OF_STREAM]);
  const file = await join(toIpcFile(split(stream, [100])));
  assert.deepEqual(tableFromIPC(file).toArray().map(String), [
    '{"d": "a"}',
    '{"d": "b"}',
    '{"d": "a"}',
    '{"d": "b"}',
  ]);
});

test("another dictionary is added to the one before in a file, and its indices are moved", async () => {
  for (const index of [new Int8(), new Int32()]) {
    const stream = await changingDictionaries(index);
    const words = [...(tableFromIPC(stream).getChild("n") ?? [])].length;
    assert.equal(words, 8);
    const file = tableFromIPC(await join(toIpcFile(split(stream, [100, 333]))));
    assert.deepEqual([...(file.getChild("d") ?? [])], ["a", "b", "x", "a", "a", "b", "x", "a"]);
    const lists = [...(file.getChild("l") ?? [])].map((list) => [...list]);
    assert.deepEqual(lists, [["a"], ["b"], ["x"], ["a"], ["a"], ["b"], ["x"], ["a"]]);
  }
});

test("indices that are too small for all dictionaries together are refused", async () => {
  const type = new Dictionary(new Utf8(), new Int8(), 1);
  const words = (prefix: string) => Array.from({ length: 100 }, (_, i) => `${prefix}${i}`);
  const [one, other] = await Promise.all(
    ["a", "b"].map((prefix) => messagesOf(new Table({ d: vectorFromArray(words(prefix), type) }))),
  );
  const stream = Buffer.concat([one?.schema, ...(one?.data ?? []), ...(other?.data ?? [])] as Uint8Array[]);
  await assert.rejects(join(toIpcFile(split(stream, []))), (error) => isLanceError(error, "Unsupported"));
});
