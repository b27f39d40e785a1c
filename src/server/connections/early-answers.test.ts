import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, constants } from "node:http2";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "vitest";
import { rawConnection, startServer } from "../../../test/fixtures/server/server.ts";
import { encodeFrame } from "../../wires/grpc/frame.ts";

const SERVICE = "/lance.namespace.v1.LanceNamespaceService";
const LARGE = Buffer.alloc(2_000, 32);
const MIB = 1024 * 1024;

/** Requests over Connect and gRPC-Web that are answered before their body has arrived. */
const REFUSED: readonly (readonly [title: string, path: string, type: string, start: Buffer])[] = [
  ["a message that is too large", `${SERVICE}/DescribeTable`, "application/json", LARGE],
  [
    "a message of a stream that is too large",
    `${SERVICE}/CreateTable`,
    "application/connect+proto",
    encodeFrame(LARGE, false),
  ],
  [
    "a message of gRPC-Web that is too large",
    `${SERVICE}/DescribeTable`,
    "application/grpc-web",
    encodeFrame(LARGE, false),
  ],
  ["another content type", `${SERVICE}/DescribeTable`, "image/jpeg", LARGE],
  ["an unknown method", "/no.such.Service/Method", "application/proto", LARGE],
];

for (const [title, path, type, start] of REFUSED) {
  for (const framing of ["content-length: 20971520", "transfer-encoding: chunked"]) {
    const isChunked = framing.startsWith("transfer");
    const pieceOf = (data: Buffer) =>
      isChunked
        ? Buffer.concat([Buffer.from(`${data.length.toString(16)}\r\n`), data, Buffer.from("\r\n")])
        : data;
    const head = `POST ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: ${type}\r\n${framing}\r\n\r\n`;

    async function refused(port: number) {
      const connection = rawConnection(port);
      connection.socket.write(head);
      connection.socket.write(pieceOf(start));
      const isWhole = () => {
        const [headers = "", body] = connection.received().split("\r\n\r\n", 2);
        return body?.length === Number(/content-length: (\d+)/i.exec(headers)?.[1]);
      };
      while (!isWhole()) await sleep(5);
      return connection;
    }

    test(`${title} is answered as a whole at once, and its connection closes after the body (${framing})`, async () => {
      await using server = await startServer({ maxMessageBytes: 1_000 });
      const { socket, received, closed } = await refused(server.port);
      assert.match(received(), /\r\nconnection: close\r\n/i);
      const errors: Error[] = [];
      socket.on("error", (error) => errors.push(error));
      for (let sent = start.length; sent < 20 * MIB; sent += MIB)
        socket.write(pieceOf(Buffer.alloc(Math.min(MIB, 20 * MIB - sent))));
      if (isChunked) socket.write("0\r\n\r\n");
      await closed;
      assert.deepEqual(errors, []);
    });

    test(`a server that goes does not wait for the body of ${title} (${framing})`, async () => {
      await using server = await startServer({ maxMessageBytes: 1_000 });
      const { closed } = await refused(server.port);
      assert.equal(await server.close({ graceMs: 5_000 }), true);
      await closed;
    });
  }
}

test("a server that goes does not wait for the rest of a small body that was refused", async () => {
  await using server = await startServer();
  const { socket, received, closed } = rawConnection(server.port);
  socket.write(
    `POST ${SERVICE}/DescribeTable HTTP/1.1\r\nhost: localhost\r\ncontent-type: image/jpeg\r\ncontent-length: 9\r\n\r\n`,
  );
  while (!received().includes(" 415 ")) await sleep(5);
  assert.equal(await server.close({ graceMs: 5_000 }), true);
  await closed;
});

for (const [title, path, type, start] of REFUSED) {
  test(`${title} is answered over HTTP/2 to a client that sends on, and its session stays`, async (t) => {
    await using server = await startServer({ maxMessageBytes: 1_000 });
    const session = connect(`http://localhost:${server.port}`);
    t.onTestFinished(() => session.destroy());
    const errors: Error[] = [];
    const open = () => {
      const stream = session.request({ ":method": "POST", ":path": path, "content-type": type });
      stream.on("error", (error) => errors.push(error));
      return stream;
    };
    const sending = open();
    sending.write(start);
    const answered = once(sending, "response");
    const closed = once(sending, "close");
    const sendOn = () => {
      while (!sending.destroyed && sending.write(Buffer.alloc(MIB)));
    };
    sending.on("drain", sendOn);
    const [headers] = await answered;
    sendOn();
    sending.resume();
    await closed;
    assert.equal(sending.rstCode, constants.NGHTTP2_NO_ERROR);

    const next = open();
    next.end(start);
    const [again] = await once(next, "response");
    next.resume();
    assert.equal(again[":status"], headers[":status"]);
    assert.deepEqual(errors, []);
  });
}

for (const [title, status, headers] of [
  ["an unknown expectation", 417, { ":method": "POST", ":path": "/v1/x", expect: "more" }],
  ["a request for a tunnel", 405, { ":method": "CONNECT", ":authority": "localhost:1" }],
] as const) {
  test(`${title} over HTTP/2 is refused, and the server keeps nothing that its client sends on`, async (t) => {
    await using server = await startServer();
    const session = connect(`http://localhost:${server.port}`);
    t.onTestFinished(() => session.destroy());
    const stream = session.request(headers, { endStream: false });
    const answered = once(stream, "response");
    const closed = once(stream, "close");
    const sendOn = () => {
      while (!stream.destroyed && stream.write(Buffer.alloc(MIB)));
    };
    stream.on("drain", sendOn);
    sendOn();
    const [answer] = await answered;
    assert.equal(answer[":status"], status);
    stream.resume();
    await closed;
    assert.equal(stream.rstCode, constants.NGHTTP2_NO_ERROR);
  });
}
