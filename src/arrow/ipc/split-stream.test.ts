import assert from "node:assert/strict";
import { Dictionary, Int32, Table, tableFromIPC, tableToIPC, Utf8, vectorFromArray } from "apache-arrow";
import { describe, it } from "vitest";
import { cut } from "../../../test/support/arrow.ts";
import { isLanceError } from "../../namespace/errors.ts";
import { joinIpcStreams } from "./join-streams.ts";
import { splitIpcStream } from "./split-stream.ts";

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
