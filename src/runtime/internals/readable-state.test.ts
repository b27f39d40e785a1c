import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { test } from "vitest";
import { limitReadAhead, waitingPieces } from "./readable-state.ts";

test("_readableState tells how many pieces of a stream wait", () => {
  const stream = new Readable({ read() {} });
  for (let count = 0; count < 5; count++) stream.push("x");
  assert.equal(waitingPieces(stream), 5);
  stream.read(1);
  assert.equal(waitingPieces(stream), 4);
  while (stream.read(1) !== null);
  assert.equal(waitingPieces(stream), 0);
});

test("_readableState limits what a stream reads ahead", async () => {
  let made = 0;
  const stream = new Readable({
    objectMode: true,
    read() {
      made += 1;
      setImmediate(() => this.push({ made }));
    },
  });
  limitReadAhead(stream, 2);
  assert.equal(stream.readableHighWaterMark, 2);
  stream.read(0);
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(made, 2);
});
