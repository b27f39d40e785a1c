import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { people, personStream } from "../../../../test/support/arrow.ts";
import { countRows } from "./import.ts";

async function* inPieces(bytes: Uint8Array, size: number) {
  for (let at = 0; at < bytes.byteLength; at += size) yield bytes.subarray(at, at + size);
}

describe("countRows", () => {
  for (const size of [1, 7, 100, 1_000_000]) {
    it(`counts the rows of a stream in pieces of ${size} bytes, and passes them unchanged`, async () => {
      const stream = personStream(people(300));
      const counted = countRows(inPieces(stream, size));
      const passed = Buffer.concat(await Array.fromAsync(counted.bytes));
      assert.deepEqual(passed, Buffer.from(stream));
      assert.equal(counted.count(), 300);
    });
  }

  it("counts nothing in other bytes, and passes them", async () => {
    const counted = countRows(inPieces(Buffer.from("no stream, but a text of some length"), 5));
    assert.equal(
      Buffer.concat(await Array.fromAsync(counted.bytes))
        .toString()
        .slice(0, 9),
      "no stream",
    );
    assert.equal(counted.count(), undefined);
  });
});
