import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, constants } from "node:http2";
import { connect as connectTcp } from "node:net";
import { create } from "@bufbuild/protobuf";
import { expect, type TestContext, test } from "vitest";
import { rawConnection, startServer } from "../../../test/fixtures/server/server.ts";
import { DescribeTableResponseSchema } from "../../gen/lance/namespace/v1/table_pb.ts";
import { createByteBudget } from "../../namespace/memory/byte-budget.ts";
import { fakeService, METHODS, pathOfMethod } from "../../wires/grpc/fixture.ts";

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
