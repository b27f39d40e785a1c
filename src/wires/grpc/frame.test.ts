import assert from "node:assert/strict";
import { create, fromBinary, type Message } from "@bufbuild/protobuf";
import { test } from "vitest";
import {
  CountTableRowsResponseSchema,
  QueryTableResponseSchema,
} from "../../gen/lance/namespace/v1/query_pb.ts";
import { encodeFrame, encodeMessage, FrameReader, framedMessage, LENT_BYTES } from "./frame.ts";

test("messages come out whole however the bytes are cut", () => {
  const messages = [0, 1, 4, 300, 70_000].map((length, fill) => Buffer.alloc(length, fill));
  const body = Buffer.concat(messages.map((message) => encodeFrame(message, message.length === 4)));
  for (const size of [1, 2, 5, 7, 1000, body.length]) {
    const reader = new FrameReader(70_000);
    const found: Buffer[] = [];
    for (let start = 0; start < body.length; start += size) {
      reader.push(body.subarray(start, start + size));
      for (let frame = reader.next(); frame !== undefined; frame = reader.next()) {
        assert.equal(frame.compressed, frame.data.length === 4);
        found.push(Buffer.from(frame.data));
      }
    }
    assert.deepEqual(found, messages);
    assert.equal(reader.partial, false);
  }
});

test("a large message grows only as its bytes arrive", () => {
  const data = Buffer.alloc(5 << 20, 7);
  const frame = encodeFrame(data, false);
  const reader = new FrameReader(data.length);
  let found: Uint8Array | undefined;
  for (let start = 0; start < frame.length; start += 16_384) {
    reader.push(frame.subarray(start, start + 16_384));
    assert.equal(reader.partial, true);
    found = reader.next()?.data;
  }
  assert.ok(found && data.equals(found));
});

test("a message that has only begun takes little memory, whatever length it announces", () => {
  const before = process.memoryUsage().arrayBuffers;
  const readers = Array.from({ length: 1000 }, () => {
    const reader = new FrameReader(16 << 20);
    reader.push(encodeFrame(Buffer.alloc(1), false).fill(0xff, 2, 4));
    assert.equal(reader.next(), undefined);
    return reader;
  });
  assert.ok(process.memoryUsage().arrayBuffers - before < 100 << 20);
  assert.ok(readers.every(({ partial }) => partial));
});

test("memory that a message has outgrown is freed at once", () => {
  const body = encodeFrame(Buffer.alloc(16 << 20), false);
  const before = process.memoryUsage().arrayBuffers;
  const readers = Array.from({ length: 20 }, () => {
    const reader = new FrameReader(16 << 20);
    // A piece more than 4 MiB, so that 4 MiB are left behind.
    for (let start = 0; start <= 4 << 20; start += 65_536) {
      reader.push(body.subarray(start, start + 65_536));
      assert.equal(reader.next(), undefined);
    }
    return reader;
  });
  assert.ok(process.memoryUsage().arrayBuffers - before < (readers.length * 8 + 4) << 20);
});

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
