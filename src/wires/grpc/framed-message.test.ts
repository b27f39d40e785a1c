import assert from "node:assert/strict";
import { create, fromBinary, type Message } from "@bufbuild/protobuf";
import { test } from "vitest";
import {
  CountTableRowsResponseSchema,
  QueryTableResponseSchema,
} from "../../gen/lance/namespace/v1/query_pb.ts";
import { encodeMessage, framedMessage, LENT_BYTES } from "./framed-message.ts";

const framed = (message: Message) => encodeMessage(QueryTableResponseSchema, message);
const bytes = (length: number) => Uint8Array.from({ length }, (_, i) => i % 251);
const response = (data: Uint8Array) =>
  create(QueryTableResponseSchema, { context: { a: "b" }, data: { contentType: "x/y", data } });

test("frames a message with a body of any length so that it decodes to the same message", () => {
  for (const length of [0, 1, LENT_BYTES - 1, LENT_BYTES, 3_000_000]) {
    const message = response(bytes(length));
    const frame = Buffer.concat(framed(message));
    assert.equal(frame[0], 0);
    assert.equal(frame.readUInt32BE(1), frame.length - 5);
    assert.deepEqual(fromBinary(QueryTableResponseSchema, new Uint8Array(frame.subarray(5))), message);
  }
});

test("leaves a long body in its memory, and the message as it was", () => {
  const data = bytes(LENT_BYTES);
  const message = response(data);
  assert.equal(framed(message).at(-1), data);
  assert.equal(message.data?.data, data);
  assert.ok(framed(response(bytes(10))).every((piece) => piece.buffer !== data.buffer));
});

test("frames messages without a body, and passes pieces on that are made already", () => {
  const counted = create(CountTableRowsResponseSchema, { count: 7n });
  const frame = Buffer.concat(encodeMessage(CountTableRowsResponseSchema, counted));
  assert.equal(fromBinary(CountTableRowsResponseSchema, frame.subarray(5)).count, 7n);
  const pieces = [bytes(3), bytes(4)];
  assert.equal(framed(framedMessage(QueryTableResponseSchema, pieces)), pieces);
});
