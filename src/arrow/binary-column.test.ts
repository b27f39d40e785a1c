import assert from "node:assert/strict";
import { tableFromIPC } from "apache-arrow";
import { describe, it } from "vitest";
import { createBinaryColumn } from "./binary-column.ts";
import { parseMessageHead, readPrefix } from "./ipc/message.ts";
import { END_OF_STREAM } from "./ipc/stream.ts";

type Values = readonly (Uint8Array | undefined)[];

async function streamOf(name: string, ...batches: Values[]): Promise<Buffer> {
  const column = await createBinaryColumn(name);
  const parts: Uint8Array[] = [column.schema];
  for (const values of batches) {
    const { head, tail } = column.batch(values.map((value) => value?.byteLength));
    parts.push(head, ...values.filter((value) => value !== undefined), tail);
  }
  return Buffer.concat([...parts, END_OF_STREAM]);
}

const read = (stream: Buffer, name: string) =>
  tableFromIPC(stream)
    .toArray()
    .map((row) => {
      const value = row[name] as Uint8Array | null;
      return value === null ? undefined : Buffer.from(value).toString("latin1");
    });

const bytes = (text: string) => Buffer.from(text, "latin1");

describe("a stream with a single binary column", () => {
  it("keeps values, nulls and empty values apart, over several batches", async () => {
    const nine = Array.from({ length: 9 }, (_, i) => bytes("x".repeat(i)));
    const stream = await streamOf("b", [bytes("one"), undefined, bytes("")], nine, [undefined]);
    const expected = ["one", undefined, "", ...nine.map(String), undefined];
    assert.deepEqual(read(stream, "b"), expected);
  });

  it("names the column as it is told, with dots and letters of any script", async () => {
    assert.deepEqual(read(await streamOf("info.blöb", [bytes("v")]), "info.blöb"), ["v"]);
  });

  it("can announce values that are larger than any buffer", async () => {
    const { head, tail } = (await createBinaryColumn("b")).batch([2 ** 40 + 1]);
    const prefix = readPrefix(Buffer.from(head), 0);
    const metadata = head.subarray(8, 8 + (prefix?.metadataLength ?? 0));
    const { bodyLength, rows } = parseMessageHead(metadata, 0);
    assert.equal(rows, 1);
    assert.equal(bodyLength, 8 + 16 + 2 ** 40 + 8);
    assert.equal(tail.byteLength, 7);
  });
});
