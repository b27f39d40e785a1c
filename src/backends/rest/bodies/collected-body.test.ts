import assert from "node:assert/strict";
import { test } from "vitest";
import { CollectedBody } from "./collected-body.ts";

const PIECES = Array.from({ length: 50 }, (_, i) => Buffer.alloc(i * 7, i));

for (const expected of [0, 3, Buffer.concat(PIECES).length, 100_000]) {
  test(`joins pieces, whose announced size is ${expected}`, () => {
    const body = new CollectedBody(expected);
    for (const piece of PIECES) body.add(piece);
    assert.deepEqual(body.bytes, Buffer.concat(PIECES));
  });
}

test("does not move what has arrived of a body whose size is announced", () => {
  const body = new CollectedBody(1000);
  body.add(Buffer.alloc(1));
  const { buffer } = body.bytes;
  body.add(Buffer.alloc(999));
  assert.equal(body.bytes.buffer, buffer);
});
