import assert from "node:assert/strict";
import { Readable } from "node:stream";
import {
  Dictionary,
  Int32,
  Table,
  tableFromArrays,
  tableFromIPC,
  tableToIPC,
  Utf8,
  vectorFromArray,
} from "apache-arrow";
import { describe, it } from "vitest";
import { cut } from "../../../test/support/arrow.ts";
import { isLanceError } from "../../namespace/errors.ts";
import { joinIpcStreams, splitIpcStream } from "./join-streams.ts";

const { schema } = tableFromArrays({ id: Int32Array.of(0) });
const streamOf = (...ids: number[]) =>
  tableToIPC(ids.length === 0 ? new Table(schema) : tableFromArrays({ id: Int32Array.from(ids) }), "stream");

async function* inPieces(bytes: Uint8Array, size: number): AsyncIterable<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += size) yield bytes.subarray(at, at + size);
}

async function join(streams: Uint8Array[], size = 7): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of joinIpcStreams(streams.map((bytes) => () => inPieces(bytes, size))))
    pieces.push(piece);
  return Buffer.concat(pieces);
}

for (const size of [1, 7, 1_000_000]) {
  it(`joins streams that arrive in pieces of ${size}`, async () => {
    const table = tableFromIPC(await join([streamOf(1, 2), streamOf(3), streamOf(), streamOf(4)], size));
    assert.deepEqual([...(table.getChild("id") ?? [])], [1, 2, 3, 4]);
  });
}

it("opens a stream when the one before has ended", async () => {
  const opened: number[] = [];
  const sources = [1, 2].map((id) => () => {
    opened.push(id);
    return inPieces(streamOf(id), 1000);
  });
  const joined = joinIpcStreams(sources)[Symbol.asyncIterator]();
  await joined.next();
  assert.deepEqual(opened, [1]);
  await joined.return?.();
});

it("closes every stream, also those that are refused", async () => {
  const other = tableToIPC(tableFromArrays({ name: ["x"] }), "stream");
  const closed: number[] = [];
  const sources = [streamOf(1), streamOf(2), other].map(
    (bytes, i) =>
      async function* () {
        try {
          yield bytes;
        } finally {
          closed.push(i);
        }
      },
  );
  await assert.rejects(Readable.from(joinIpcStreams(sources)).toArray());
  assert.deepEqual(closed, [0, 1, 2]);
});

it("is empty without a stream", async () => {
  assert.equal((await join([])).byteLength, 0);
});

it("refuses schemas that differ", async () => {
  const other = tableToIPC(tableFromArrays({ name: ["x"] }), "stream");
  await assert.rejects(join([streamOf(1), other]), (error) =>
    isLanceError(error, "TableSchemaValidationError"),
  );
});

it("refuses what is cut off or no stream", async () => {
  const whole = streamOf(1, 2, 3);
  const broken = [
    Buffer.concat([whole, whole]),
    Buffer.concat([whole, new Uint8Array(8)]),
    whole.subarray(0, whole.byteLength - 24),
    Buffer.from("nothing of the kind"),
    new Uint8Array(),
  ];
  for (const bytes of broken) {
    await assert.rejects(join([whole, bytes]), (error) => isLanceError(error, "InvalidInput"));
  }
});

async function collect(chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array[]> {
  const all: Uint8Array[] = [];
  for await (const chunk of chunks) all.push(chunk);
  return all;
}

const words = (values: string[]) => vectorFromArray(values, new Dictionary(new Utf8(), new Int32()));
const part = (values: string[]) => new Table({ word: words(values) });

describe("splitIpcStream", () => {
  it("gives every batch a stream of its own, with its dictionaries", async () => {
    const one = part(["a", "b"]);
    const table = new Table([...one.batches, ...one.batches, ...one.batches]);
    const pieces = await collect(splitIpcStream(cut(tableToIPC(table, "stream"), 7)));
    assert.equal(pieces.length, 3);
    for (const piece of pieces)
      assert.deepEqual([...(tableFromIPC(piece).getChild("word") ?? [])], ["a", "b"]);
    const joined = Buffer.concat(await collect(joinIpcStreams(pieces.map((piece) => () => cut(piece, 100)))));
    assert.equal(tableFromIPC(joined).numRows, 6);
  });

  it("keeps the schema of a stream without batches", async () => {
    const empty = tableToIPC(new Table(part(["a"]).schema), "stream");
    const pieces = await collect(splitIpcStream(cut(empty, 64)));
    assert.equal(pieces.length, 1);
    assert.equal(tableFromIPC(pieces[0] as Uint8Array).numRows, 0);
  });

  it("refuses what breaks off", async () => {
    const whole = tableToIPC(part(["a", "b"]), "stream");
    for (const length of [0, 3, 100, whole.length - 40]) {
      const broken = collect(splitIpcStream(cut(whole.subarray(0, length), 64)));
      await assert.rejects(broken, (error) => isLanceError(error, "InvalidInput"), String(length));
    }
  });
});
