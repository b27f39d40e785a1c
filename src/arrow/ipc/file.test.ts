import assert from "node:assert/strict";
import { Table, tableFromArrays, tableFromIPC, tableToIPC } from "apache-arrow";
import { test } from "vitest";
import { isLanceError } from "../../namespace/errors.ts";
import { toIpcFile, toIpcStream } from "./file.ts";

const ids = Array.from({ length: 500 }, (_, index) => index);
const table = tableFromArrays({ id: Int32Array.from(ids), half: Float64Array.from(ids, (id) => id / 2) });

async function* cut(bytes: Uint8Array, size: number): AsyncIterable<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += size) yield bytes.subarray(at, at + size);
}

async function collect(pieces: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const all: Uint8Array[] = [];
  for await (const piece of pieces) all.push(Buffer.from(piece));
  return Buffer.concat(all);
}

/** Returns a file with the schema before its batches, as Lance and Arrow's C++ write it. */
function fileOf(): Promise<Buffer> {
  return collect(toIpcFile(cut(tableToIPC(table, "stream"), 100)));
}

for (const size of [1, 7, 4096]) {
  test(`a file in pieces of ${size} bytes becomes its stream`, async () => {
    const stream = await collect(toIpcStream(cut(await fileOf(), size)));
    assert.notEqual(stream.subarray(0, 6).toString(), "ARROW1");
    assert.deepEqual(tableFromIPC(stream).toArray().map(String), table.toArray().map(String));
  });
}

test("there and back again", async () => {
  const stream = Buffer.from(tableToIPC(table, "stream"));
  const back = await collect(toIpcStream(toIpcFile(cut(stream, 100))));
  assert.deepEqual(back, stream);
});

test("a file without a schema before its batches is refused", async () => {
  const file = tableToIPC(table, "file");
  await assert.rejects(collect(toIpcStream(cut(file, 100))), (error) => isLanceError(error, "InvalidInput"));
});

test("a stream passes", async () => {
  const stream = Buffer.from(tableToIPC(table, "stream"));
  assert.deepEqual(await collect(toIpcStream(cut(stream, 100))), stream);
});

test("a file after another one is refused", async () => {
  const file = await fileOf();
  const empty = await collect(toIpcFile(cut(tableToIPC(new Table(table.schema), "stream"), 100)));
  for (const files of [
    [file, file],
    [file, empty],
    [empty, file],
  ]) {
    await assert.rejects(
      collect(toIpcStream(cut(Buffer.concat(files), 64))),
      (error: Error) =>
        isLanceError(error, "InvalidInput") && /goes on after the end of its Arrow data/.test(error.message),
    );
  }
});

test("a file that is cut off anywhere is refused", async () => {
  const file = await fileOf();
  for (let end = 6; end < file.byteLength; end += 37) {
    await assert.rejects(collect(toIpcStream(cut(file.subarray(0, end), 64))), (error) =>
      isLanceError(error, "InvalidInput"),
    );
  }
});
