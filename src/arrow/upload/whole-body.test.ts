import assert from "node:assert/strict";
import fc from "fast-check";
import { test } from "vitest";
import { arrowBodies } from "../../../test/support/arrow-bodies.ts";
import { isLanceError } from "../../namespace/errors.ts";
import { freeAtOnce } from "../../runtime/byte-memory.ts";
import { wholeBody } from "./whole-body.ts";

async function* split(bytes: Buffer, cuts: readonly number[]): AsyncIterable<Uint8Array> {
  let start = 0;
  for (const cut of [...cuts, bytes.byteLength].sort((a, b) => a - b)) {
    yield bytes.subarray(start, cut);
    start = cut;
  }
}

async function join(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const chunk of chunks) pieces.push(chunk);
  return Buffer.concat(pieces);
}

const bodies = arrowBodies();

/** A body, and where it is split. */
const splits = fc
  .constantFrom(...bodies)
  .chain(({ bytes }) =>
    fc.tuple(
      fc.constant(bytes),
      fc.array(fc.nat(bytes.byteLength), { maxLength: 8 }),
      fc.nat(bytes.byteLength - 1),
    ),
  );

test("a whole stream or file passes unchanged, however it is split", async () => {
  await fc.assert(
    fc.asyncProperty(splits, async ([bytes, cuts]) => {
      assert.deepEqual(await join(wholeBody(split(bytes, cuts))), bytes);
    }),
  );
});

test("a reader may free each chunk when it has it", async () => {
  await fc.assert(
    fc.asyncProperty(splits, async ([bytes, cuts]) => {
      async function* own() {
        for await (const chunk of split(bytes, cuts)) yield Uint8Array.from(chunk);
      }
      let length = 0;
      for await (const chunk of wholeBody(own())) {
        length += chunk.byteLength;
        freeAtOnce(chunk);
      }
      assert.equal(length, bytes.byteLength);
    }),
  );
});

test("a body that is cut anywhere is refused at its end, and passes up to there", async () => {
  await fc.assert(
    fc.asyncProperty(splits, async ([bytes, cuts, end]) => {
      const cut = bytes.subarray(0, Math.max(1, end));
      const passed: Uint8Array[] = [];
      await assert.rejects(
        async () => {
          const within = cuts.filter((place) => place <= cut.byteLength);
          for await (const chunk of wholeBody(split(cut, within))) passed.push(chunk);
        },
        (error) => isLanceError(error, "InvalidInput") && /ends before its Arrow data/.test(error.message),
      );
      assert.deepEqual(Buffer.concat(passed), cut);
    }),
  );
});

test("a body without a message is refused, although it has a marker", async () => {
  for (const bytes of [Buffer.alloc(4), Buffer.alloc(1000), Buffer.from("ffffffff00000000", "hex")]) {
    await assert.rejects(join(wholeBody(split(bytes, [2]))), (error) => isLanceError(error, "InvalidInput"));
  }
});

test("an empty body is refused", async () => {
  await assert.rejects(
    join(wholeBody(split(Buffer.alloc(0), []))),
    (error) => isLanceError(error, "InvalidInput") && /is empty/.test(error.message),
  );
});

test("passes the bytes that follow a stream", async () => {
  const bytes = Buffer.concat([bodies[0]?.bytes as Buffer, Buffer.from("more")]);
  assert.deepEqual(await join(wholeBody(split(bytes, [5]))), bytes);
});
