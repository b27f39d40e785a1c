import assert from "node:assert/strict";
import { fromBinary, type Message } from "@bufbuild/protobuf";
import { tableFromArrays, tableFromIPC, tableToIPC } from "apache-arrow";
import { test } from "vitest";
import { FlightDataSchema } from "../../gen/arrow/flight/protocol/Flight_pb.ts";
import { isLanceError } from "../../namespace/errors.ts";
import { encodeMessage } from "../grpc/frame.ts";
import { flightData } from "./flight-data.ts";

async function* cut(bytes: Uint8Array, size: number) {
  for (let at = 0; at < bytes.length; at += size) {
    const chunk = Uint8Array.from(bytes.subarray(at, at + size));
    yield chunk;
    // The wire has promised to be done with it.
    chunk.fill(0);
  }
}

const framed = (message: Message) => encodeMessage(FlightDataSchema, message);
const table = tableFromArrays({ id: Int32Array.from({ length: 500 }, (_, i) => i) });
const stream = tableToIPC(table, "stream");

test("cuts a stream into messages, however it arrives, and keeps nothing of a chunk", async () => {
  for (const size of [1, 7, 64, stream.length]) {
    const parts: Uint8Array[] = [];
    const sent: Buffer[] = [];
    for await (const message of flightData(cut(stream, size))) sent.push(Buffer.concat(framed(message)));
    let rest = Buffer.concat(sent);
    while (rest.length > 0) {
      const end = 5 + rest.readUInt32BE(1);
      const { dataHeader, dataBody } = fromBinary(FlightDataSchema, rest.subarray(5, end));
      rest = rest.subarray(end);
      const prefix = Buffer.alloc(8, 0xff);
      prefix.writeUInt32LE(dataHeader.length, 4);
      parts.push(prefix, dataHeader, dataBody);
    }
    assert.deepEqual(
      [...(tableFromIPC(Buffer.concat(parts)).getChild("id") ?? [])],
      [...(table.getChild("id") ?? [])],
    );
  }
});

test("leaves the body of a message in the memory of its chunk", async () => {
  async function* whole() {
    yield stream;
  }
  const pieces: Uint8Array[] = [];
  for await (const message of flightData(whole())) pieces.push(...framed(message));
  assert.deepEqual(
    pieces.map(({ buffer }) => buffer === stream.buffer),
    [false, false, true],
  );
});

test("refuses a stream that ends in the middle of a message", async () => {
  await assert.rejects(
    async () => {
      for await (const _ of flightData(cut(stream.subarray(0, stream.length - 100), 1000)));
    },
    (error) => isLanceError(error, "ServiceUnavailable"),
  );
});
