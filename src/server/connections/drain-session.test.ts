import assert from "node:assert/strict";
import { once } from "node:events";
import { Agent, get, type IncomingMessage, type ServerResponse } from "node:http";
import { connect } from "node:http2";
import { create } from "@bufbuild/protobuf";
import { Client, credentials, Metadata } from "@grpc/grpc-js";
import { expect, onTestFinished, test, vi } from "vitest";
import { rawConnection, startServer } from "../../../test/fixtures/server/server.ts";
import { callUnary, fakeService, rawCall } from "../../../test/fixtures/wires/grpc.ts";
import { DescribeTableResponseSchema } from "../../gen/lance/namespace/v1/table_pb.ts";
import { encodeFrame } from "../../wires/grpc/frame.ts";
import { LONGEST_ROUND_TRIP_MS } from "./drain-session.ts";

/** Returns a service whose calls end when they are released or aborted. */
function createHeld() {
  const [begun, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const service = fakeService({
    async unary(_method, _request, { signal }) {
      begun.resolve();
      await Promise.race([released.promise, once(signal, "abort")]);
      signal.throwIfAborted();
      return create(DescribeTableResponseSchema, { table: "late" });
    },
  });
  return { service, begun: begun.promise, release: released.resolve };
}

test("a drain waits for running gRPC calls and lets them finish", async () => {
  const { service, begun, release } = createHeld();
  await using server = await startServer({ service });
  const client = new Client(server.address, credentials.createInsecure());
  const call = callUnary(client, {}, new Metadata());
  await begun;
  const closed = server.close({ graceMs: 60_000 });
  assert.equal(server.readiness.ready, false);
  release();
  assert.equal((await call).response?.["table"], "late");
  assert.equal(await closed, true);
  client.close();
});

test("a drain cuts off what is not done in time", async () => {
  const { service, begun } = createHeld();
  await using server = await startServer({ service });
  const client = new Client(server.address, credentials.createInsecure());
  const call = callUnary(client, {}, new Metadata());
  await begun;
  assert.equal(await server.close({ graceMs: 100 }), false);
  assert.ok((await call).error);
  client.close();
});

test("a session is told to go, and what it sends before it knows is answered", async () => {
  await using server = await startServer();
  const session = connect(server.url);
  const lastStreams: number[] = [];
  session.on("goaway", (_code, last) => lastStreams.push(last));
  await rawCall(session, encodeFrame(new Uint8Array(0), false));
  // A busy machine must not end the round trip before the call has arrived.
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const closed = server.close({ graceMs: 5000 });
  const { trailers } = await rawCall(session, encodeFrame(new Uint8Array(0), false));
  assert.equal(trailers["grpc-status"], "0");
  await vi.advanceTimersByTimeAsync(LONGEST_ROUND_TRIP_MS);
  assert.equal(await closed, true);
  assert.equal(lastStreams[0], 2 ** 31 - 1);
});

test("HTTP/1.1: idle connections are closed, running requests finish with connection: close", async () => {
  const held: ServerResponse[] = [];
  await using server = await startServer({
    rest: (request, response) => {
      if (request.url === "/begun") response.write("a");
      if (request.url === "/fast") response.end("b");
      else held.push(response);
    },
  });
  const agent = new Agent({ keepAlive: true });
  const fetchBody = (path: string) =>
    new Promise<[IncomingMessage, string]>((resolve, reject) => {
      get({ port: server.port, host: "127.0.0.1", path, agent }, (response) => {
        let text = "";
        response.on("data", (piece) => {
          text += piece;
        });
        response.on("end", () => resolve([response, text]));
      }).on("error", reject);
    });
  await fetchBody("/fast");
  const silent = rawConnection(server.port);
  const running = fetchBody("/slow");
  const begun = fetchBody("/begun");
  await once(silent.socket, "connect");
  await expect.poll(() => held.length).toBe(2);
  const closed = server.close({ graceMs: 60_000 });
  for (const response of held) response.end("b");
  const [response, text] = await running;
  assert.equal(text, "b");
  assert.equal(response.headers.connection, "close");
  assert.equal((await begun)[1], "ab");
  assert.equal(await closed, true);
  await silent.closed;
  agent.destroy();
});

test("closing without connections is immediate, and twice is harmless", async () => {
  await using server = await startServer();
  assert.equal(await server.close(), true);
  assert.equal(await server.close(), true);
});

test("during the drain delay everything is served, and clients are told to go with an answer", async () => {
  await using server = await startServer({ rest: (_request, response) => response.end("b") });
  const http1 = new Agent({ keepAlive: true });
  const fetchOne = async (): Promise<IncomingMessage> => {
    const outgoing = get({ port: server.port, host: "127.0.0.1", path: "/", agent: http1 });
    const [response] = (await once(outgoing, "response")) as [IncomingMessage];
    response.resume();
    await once(response, "end");
    return response;
  };
  const message = encodeFrame(new Uint8Array(0), false);
  await fetchOne();
  const session = connect(server.url);
  const told = once(session, "goaway");
  await rawCall(session, message);
  const ended = server.close({ delayMs: 2_000, graceMs: 60_000 });
  assert.equal(server.readiness.ready, false);
  // The first request uses a kept connection, the second a new one.
  for (const response of [await fetchOne(), await fetchOne()]) {
    assert.deepEqual([response.statusCode, response.headers.connection], [200, "close"]);
  }
  assert.equal(session.closed, false);
  assert.equal((await rawCall(session, message)).trailers["grpc-status"], "0");
  await told;
  const late = connect(server.url);
  assert.equal((await rawCall(late, message)).trailers["grpc-status"], "0");
  assert.equal(await ended, true);
  http1.destroy();
});
