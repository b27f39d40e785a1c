import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { LineBuffer } from "./line-buffer.ts";

describe("the buffer of lines", () => {
  it("has lines of any length and script in their order, also after it has grown and after it was cleared", () => {
    const buffer = new LineBuffer();
    for (const length of [1, 9_000, 3]) {
      const lines = Array.from({ length: 50 }, (_, number) => "a表😀é".repeat(length) + number);
      for (const line of lines) buffer.add(line);
      const expected = `${lines.join("\n")}\n`;
      assert.ok(buffer.bytes().equals(Buffer.from(expected)));
      assert.deepEqual([buffer.lines, buffer.length], [lines.length, Buffer.byteLength(lines.join(""))]);
      buffer.clear();
      assert.deepEqual([buffer.lines, buffer.length, buffer.bytes().length], [0, 0, 0]);
    }
  });
});
