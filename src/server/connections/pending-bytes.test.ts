import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, constants } from "node:http2";
import { connect as connectTcp } from "node:net";
import { create } from "@bufbuild/protobuf";
import { describe, expect, type TestContext, test } from "vitest";
import { rawConnection, startServer } from "../../../test/fixtures/server/server.ts";
import { fakeService, METHODS, pathOfMethod } from "../../../test/fixtures/wires/grpc.ts";
import { CreateTableResponseSchema } from "../../gen/lance/namespace/v1/data_pb.ts";
import { DescribeTableResponseSchema } from "../../gen/lance/namespace/v1/table_pb.ts";
import { createByteBudget } from "../../namespace/memory/byte-budget.ts";

const MIB = 1024 * 1024;

test("unread bytes of HTTP/2 count for the memory of requests, and the streams with the most of them are reset", async (t) => {
  const budget = createByteBudget(3 * MIB);
  const answered = Promise.withResolvers<void>();
  const service = fakeService({
    async upload() {
      await answered.promise;
      return create(CreateTableResponseSchema, {});
    },
  });
  await using server = await startServer({ service, budget });
  const session = connect(server.url);
  t.onTestFinished(() => session.destroy());
  await once(session, "remoteSettings");
  const upload = (bytes: number) => {
    const path = { ":path": pathOfMethod(METHODS.createTable), "content-type": "application/grpc" };
    const stream = session.request({ ":method": "POST", ...path });
    stream.on("error", () => {});
    stream.write(Buffer.alloc(bytes));
    return stream;
  };
  const small = [upload(MIB / 4), upload(MIB / 4)];
  const large = upload(4 * MIB);
  await new Promise((resolve) => large.on("close", resolve));
  assert.equal(large.rstCode, constants.NGHTTP2_ENHANCE_YOUR_CALM);
  // The wire has read the first piece of each.
  await expect.poll(() => budget.held > MIB / 4 && budget.held <= MIB / 2).toBe(true);
  assert.deepEqual(
    small.map(({ closed }) => closed),
    [false, false],
  );
  answered.resolve();
  session.destroy();
  await expect.poll(() => budget.held).toBe(0);
});

/** Returns a frame of HTTP/2 on the first stream of a client. */
function frameOf(type: number, flags: number, payload: Uint8Array, streamId = 1): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(streamId, 5);
  return Buffer.concat([head, payload]);
}

/** Returns headers without any compression. */
function headersOf(headers: Readonly<Record<string, string>>): Buffer {
  const text = (value: string) => Buffer.from([value.length, ...Buffer.from(value)]);
  return Buffer.concat(
    Object.entries(headers).flatMap(([name, value]) => [Buffer.of(0), text(name), text(value)]),
  );
}

const [DATA, HEADERS, RST_STREAM, SETTINGS] = [0, 1, 3, 4] as const;
const END_HEADERS = 4;

test("frames of a byte that nobody reads count for what node takes for each of them", async (t) => {
  const answered = Promise.withResolvers<void>();
  t.onTestFinished(() => answered.resolve());
  const service = fakeService({
    async upload() {
      await answered.promise;
      return create(CreateTableResponseSchema, {});
    },
  });
  await using server = await startServer({ service, budget: createByteBudget(MIB) });
  const { socket, received } = rawConnection(server.port);
  t.onTestFinished(() => void socket.destroy());
  const head = headersOf({
    ...{ ":method": "POST", ":scheme": "http", ":authority": "localhost" },
    ...{ ":path": pathOfMethod(METHODS.createTable), "content-type": "application/grpc" },
  });
  const emptyMessage = Buffer.alloc(5);
  socket.write(
    Buffer.concat([
      Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
      frameOf(SETTINGS, 0, Buffer.alloc(0), 0),
      frameOf(HEADERS, END_HEADERS, head),
      frameOf(DATA, 0, emptyMessage),
      ...Array.from({ length: 10_000 }, () => frameOf(DATA, 0, Buffer.of(0))),
    ]),
  );
  const code = Buffer.alloc(4);
  code.writeUInt32BE(constants.NGHTTP2_ENHANCE_YOUR_CALM);
  await expect.poll(() => received().includes(frameOf(RST_STREAM, 0, code).toString("latin1"))).toBe(true);
});

test("chunks of a byte of HTTP/1.1 that nobody reads count alike, and their connection ends", async (t) => {
  await using server = await startServer({ rest: () => {}, budget: createByteBudget(MIB) });
  const { socket, closed } = rawConnection(server.port);
  t.onTestFinished(() => void socket.destroy());
  socket.write("POST / HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n");
  socket.write("1\r\na\r\n".repeat(10_000));
  await closed;
});

describe("unsent bytes", () => {
  const MIB = 1024 * 1024;
  const [GREEDY, MODEST] = ["127.0.0.2", "127.0.0.3"] as const;

  /** Calls that take nothing of their answers, of a mebibyte each, from an address. */
  async function openCalls(t: TestContext, url: string, localAddress: string, count: number) {
    const createConnection = ({ port, hostname }: URL) =>
      connectTcp({ port: Number(port), host: hostname, localAddress });
    const session = connect(url, { settings: { initialWindowSize: 0 }, createConnection });
    t.onTestFinished(() => session.destroy());
    await once(session, "remoteSettings");
    return Array.from({ length: count }, () => {
      const headers = { ":path": pathOfMethod(METHODS.describeTable), "content-type": "application/grpc" };
      const stream = session.request({ ":method": "POST", ...headers });
      stream.on("error", () => {});
      stream.end(Buffer.alloc(5));
      return stream;
    });
  }

  test("unread answers of HTTP/2 have a bound together, beyond which those of the client with the most bytes are reset", async (t) => {
    const unsentBudget = createByteBudget(4.5 * MIB);
    const unary = async () => create(DescribeTableResponseSchema, { table: "x".repeat(MIB) });
    await using server = await startServer({ service: fakeService({ unary }), unsentBudget });
    const [modest = assert.fail()] = await openCalls(t, server.url, MODEST, 1);
    await expect.poll(() => unsentBudget.held > MIB).toBe(true);
    const greedy = await openCalls(t, server.url, GREEDY, 8);
    await expect.poll(() => greedy.filter(({ closed }) => closed).length).toBe(5);
    const codes = new Set(greedy.map(({ rstCode }) => rstCode));
    assert.deepEqual(codes, new Set([0, constants.NGHTTP2_ENHANCE_YOUR_CALM]));
    assert.equal(modest.closed, false);
    assert.ok(unsentBudget.held <= 4.5 * MIB);
    for (const stream of [modest, ...greedy]) stream.destroy();
    await expect.poll(() => unsentBudget.held).toBe(0);
  });

  test("unread answers of HTTP/1.1 count, those that wait for others included, and their connections end", async () => {
    const unsentBudget = createByteBudget(12 * MIB);
    await using server = await startServer({
      rest: (request, response) => response.end("x".repeat(request.url === "/long" ? 8 * MIB : MIB)),
      unsentBudget,
    });
    const asking = (from: string, path: string, count: number) => {
      const connection = rawConnection(server.port, from);
      connection.socket.pause();
      connection.socket.write(`GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`.repeat(count));
      return connection;
    };
    const modest = asking(MODEST, "/long", 1);
    await expect.poll(() => unsentBudget.held > 0).toBe(true);
    const greedy = asking(GREEDY, "/short", 16);
    // Its client learns of the end only when it reads.
    await expect.poll(() => server.figures().open).toBe(1);
    for (const { socket } of [modest, greedy]) socket.destroy();
    await expect.poll(() => unsentBudget.held).toBe(0);
  });
});
