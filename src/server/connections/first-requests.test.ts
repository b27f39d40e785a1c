import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:http2";
import { type AddressInfo, createServer } from "node:net";
import { describe, it } from "vitest";
import { countFirstResets, FAREWELL } from "./first-requests.ts";

const PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/** Returns a frame on the first stream. */
function frame(type: number, length: number): Buffer {
  const bytes = Buffer.alloc(9 + length, "x");
  bytes.writeUIntBE(length, 0, 3);
  bytes.writeUInt16BE(type << 8, 3);
  bytes.writeUInt32BE(1, 5);
  return bytes;
}
const bytesOf = (...frames: Buffer[]) => Buffer.concat([Buffer.from(PREFACE), ...frames]);

describe("countFirstResets", () => {
  it("counts resets among other frames", () => {
    const bytes = bytesOf(frame(4, 6), frame(1, 40), frame(3, 4), frame(1, 0), frame(0, 5), frame(3, 4));
    assert.equal(countFirstResets(bytes), 2);
  });

  it("takes bytes that end within a frame, or are none", () => {
    const bytes = bytesOf(frame(4, 0), frame(3, 4));
    for (let end = 0; end < bytes.length; end++) assert.ok(countFirstResets(bytes.subarray(0, end)) <= 1);
    assert.equal(countFirstResets(Buffer.alloc(0)), 0);
  });
});

describe("FAREWELL", () => {
  it("tells a client to calm down", async () => {
    await using port = createServer((socket) => {
      socket.on("error", () => {});
      // The socket ends once what the client sends has been read.
      socket.resume();
      socket.write(FAREWELL);
    });
    port.listen(0, "127.0.0.1");
    await once(port, "listening");
    const client = connect(`http://127.0.0.1:${(port.address() as AddressInfo).port}`);
    client.on("error", () => {});
    const [code] = await once(client, "goaway");
    assert.equal(code, 11);
    client.destroy();
  });
});
