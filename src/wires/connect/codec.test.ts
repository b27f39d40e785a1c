import assert from "node:assert/strict";
import { test } from "vitest";
import { type LanceError, toLanceError } from "../../namespace/errors.ts";
import { encodeFrame } from "../grpc/frame.ts";
import { type CheckOptions, checkedBody } from "./codec.ts";

/** Returns what the library gets of a body that arrives in pieces of a byte. */
async function read(body: Uint8Array, options: Partial<CheckOptions> = {}) {
  const checked: string[] = [];
  async function* bytes() {
    for (const byte of body) yield Buffer.of(byte);
  }
  const passed: string[] = [];
  const check = async (message: Uint8Array) => void checked.push(Buffer.from(message).toString());
  const errorOf = (error: LanceError) => error as never;
  for await (const piece of checkedBody(bytes(), {
    check,
    errorOf,
    isBare: false,
    maxBytes: 100,
    ...options,
  }))
    passed.push(Buffer.from(piece).toString("latin1"));
  return { checked, passed };
}

test("the library gets messages in whole pieces, however small those are in which they arrive", async () => {
  const [first, second] = [Buffer.from("first"), Buffer.from("second")];
  const body = Buffer.concat([encodeFrame(first, false), encodeFrame(second, true)]);
  assert.deepEqual(await read(body), {
    checked: ["first"],
    passed: ["\0\0\0\0\x05", "first", "\x01\0\0\0\x06", "second"],
  });
  assert.deepEqual(await read(first, { isBare: true }), { checked: ["first"], passed: ["first"] });
});

test("the library gets a part of a message that does not end, and says so", async () => {
  assert.deepEqual(await read(encodeFrame(Buffer.from("first"), false).subarray(0, -1)), {
    checked: [],
    passed: ["\0"],
  });
});

test("a message with an unknown flag, which the library would decode unchecked, is refused", async () => {
  const frame = encodeFrame(Buffer.from("first"), false);
  frame[0] = 4;
  await assert.rejects(read(frame), (error) => /unknown flag 4/.test(toLanceError(error).message));
});
