import assert from "node:assert/strict";
import { once } from "node:events";
import { type ClientHttp2Session, connect as connectHttp2, constants } from "node:http2";
import { setTimeout as sleep, setImmediate as turn } from "node:timers/promises";
import { create, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { rawConnection, startServer } from "../../../test/fixtures/server/server.ts";
import { fakeService, METHODS, pathOfMethod, rawCall, statusOf } from "../../../test/fixtures/wires/grpc.ts";
import { openFlood } from "../../../test/support/raw-http2.ts";
import { CreateTableRequestSchema, CreateTableResponseSchema } from "../../gen/lance/namespace/v1/data_pb.ts";
import { DescribeTableResponseSchema } from "../../gen/lance/namespace/v1/table_pb.ts";
import { openCells } from "../../runtime/threads/keyed-cells.ts";
import { encodeFrame } from "../../wires/grpc/frame.ts";
import { createResetAllowances, RESETS_SHAPE } from "./reset-allowance.ts";

const SILENCE_MS = 250;
const EMPTY = encodeFrame(new Uint8Array(0), false);
const GRPC = { ":method": "POST", "content-type": "application/grpc", te: "trailers" };
const timeout = 60_000;

const head = (length: number) =>
  `POST /v1/x HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${length}\r\n\r\n`;

async function assertServes(session: ClientHttp2Session): Promise<void> {
  assert.equal(statusOf(await rawCall(session, EMPTY)), 0);
}

/** Returns a service that takes some time over each call; its uploads read nothing before. */
function waitingService(milliseconds: number) {
  return fakeService({
    async upload(_method, _request, data) {
      await sleep(milliseconds);
      let bytes = 0;
      for await (const piece of data) bytes += piece.length;
      return create(CreateTableResponseSchema, { version: BigInt(bytes) });
    },
    async unary() {
      await sleep(milliseconds);
      return create(DescribeTableResponseSchema, { table: "t" });
    },
  });
}

describe("bodies that stop", () => {
  it("closes a connection of HTTP/1.1 whose body stops", { timeout }, async () => {
    await using server = await startServer({ silenceMs: SILENCE_MS });
    const { socket, closed } = rawConnection(server.port);
    socket.write(`${head(10)}abc`);
    await closed;
  });

  it("lets a body of HTTP/1.1 take longer as long as it goes on", { timeout }, async () => {
    await using server = await startServer({ silenceMs: 4 * SILENCE_MS });
    const { socket, received } = rawConnection(server.port);
    socket.write(head(10));
    for (let count = 0; count < 10; count++) {
      socket.write("x");
      // The client pauses, for less than the limit.
      await sleep(SILENCE_MS);
    }
    while (!received().includes("rest POST /v1/x 10")) await once(socket, "data");
    socket.destroy();
  });

  it("closes a connection of HTTP/1.1 whose client does not read its answer", { timeout }, async () => {
    await using server = await startServer({
      silenceMs: SILENCE_MS,
      rest: (_request, response) => void response.end(Buffer.alloc(64 * 1024 * 1024)),
    });
    const { socket, closed } = rawConnection(server.port);
    socket.pause();
    socket.write("GET / HTTP/1.1\r\nhost: localhost\r\n\r\n");
    while (server.figures().accepted === 0 || server.figures().open > 0) await sleep(SILENCE_MS / 10);
    socket.destroy();
    await closed;
  });

  it("closes an idle connection of HTTP/1.1, also after several requests", { timeout }, async () => {
    await using server = await startServer({ keepAliveMs: SILENCE_MS });
    const { socket, closed, received } = rawConnection(server.port);
    for (let requests = 1; requests <= 3; requests++) {
      socket.write("GET / HTTP/1.1\r\nhost: localhost\r\n\r\n");
      while (received().split("rest GET /").length <= requests) await once(socket, "data");
      assert.match(received(), /keep-alive: timeout=0\b/i);
      // The client pauses, for less than the limit.
      await sleep(SILENCE_MS / 2);
    }
    await closed;
  });

  it("keeps a connection of HTTP/1.1 whose call takes longer than a client may be silent", {
    timeout,
  }, async () => {
    await using server = await startServer({
      silenceMs: SILENCE_MS,
      rest: (_request, response) => void sleep(5 * SILENCE_MS).then(() => response.end("done")),
    });
    const { socket, received } = rawConnection(server.port);
    socket.write("GET / HTTP/1.1\r\nhost: localhost\r\n\r\n");
    while (!received().includes("done")) await once(socket, "data");
    socket.destroy();
  });

  for (const [what, bytes] of [
    ["stops", EMPTY.subarray(0, 3)],
    ["never begins", undefined],
  ] as const) {
    it(`resets a stream whose body ${what}, and keeps its connection`, { timeout }, async () => {
      await using server = await startServer({ silenceMs: SILENCE_MS });
      const session = connectHttp2(server.url);
      const stream = session.request({ ...GRPC, ":path": pathOfMethod(METHODS.describeTable) });
      stream.on("error", () => {});
      if (bytes !== undefined) stream.write(bytes);
      await new Promise((resolve) => stream.on("close", resolve));
      assert.equal(stream.rstCode, constants.NGHTTP2_CANCEL);
      await assertServes(session);
      session.destroy();
    });
  }

  for (const bytes of [100, 100_000]) {
    it(`resets a stream of HTTP/2 whose client takes nothing of an answer of ${bytes} bytes`, {
      timeout,
    }, async () => {
      await using server = await startServer({
        silenceMs: SILENCE_MS,
        rest: (_request, response) => void response.end(Buffer.alloc(bytes)),
      });
      const session = connectHttp2(server.url, { settings: { initialWindowSize: 0 } });
      const stream = session.request({ ":path": "/v1/x" });
      stream.on("error", () => {});
      await new Promise((resolve) => stream.on("close", resolve));
      assert.equal(stream.rstCode, constants.NGHTTP2_CANCEL);
      session.destroy();
    });
  }

  for (const method of ["GET", "HEAD"]) {
    it(`keeps a stream of HTTP/2 whose ${method} takes longer than a client may be silent`, {
      timeout,
    }, async () => {
      await using server = await startServer({
        silenceMs: SILENCE_MS,
        rest: (_request, response) => void sleep(5 * SILENCE_MS).then(() => response.end("done")),
      });
      const session = connectHttp2(server.url);
      const stream = session.request({ ":path": "/v1/x", ":method": method });
      stream.resume();
      await new Promise((resolve) => stream.on("close", resolve));
      assert.equal(stream.rstCode, constants.NGHTTP2_NO_ERROR);
      session.destroy();
    });
  }

  it("waits for a backend that takes its time over a whole request", { timeout }, async () => {
    await using server = await startServer({
      silenceMs: SILENCE_MS,
      service: waitingService(5 * SILENCE_MS),
    });
    const session = connectHttp2(server.url);
    await assertServes(session);
    session.destroy();
  });

  it("waits for a backend that has not read yet what was sent", { timeout }, async () => {
    await using server = await startServer({
      silenceMs: SILENCE_MS,
      service: waitingService(5 * SILENCE_MS),
    });
    const session = connectHttp2(server.url);
    const message = create(CreateTableRequestSchema, { id: ["t"], data: { data: Buffer.alloc(2 ** 18) } });
    const frame = encodeFrame(toBinary(CreateTableRequestSchema, message), false);
    const stream = session.request({ ...GRPC, ":path": pathOfMethod(METHODS.createTable) });
    stream.write(frame);
    stream.write(frame);
    // The client pauses, for longer than the limit, while the backend has not read what it sent.
    await sleep(4 * SILENCE_MS);
    stream.end(frame);
    stream.resume();
    const [trailers] = await once(stream, "trailers");
    assert.equal(trailers["grpc-status"], "0");
    session.destroy();
  });
});

describe("idle connections of HTTP/2", () => {
  it("ends one that makes no call", { timeout }, async () => {
    await using server = await startServer({ firstCallMs: SILENCE_MS });
    const session = connectHttp2(server.url);
    await once(session, "close");
  });

  it("ends one some time after its last call, and not while a call runs", { timeout }, async () => {
    const service = waitingService(5 * SILENCE_MS);
    await using server = await startServer({ firstCallMs: 60_000, idleSessionMs: SILENCE_MS, service });
    const session = connectHttp2(server.url);
    await assertServes(session);
    await once(session, "close");
  });
});

describe("a flood of resets", () => {
  it("ends its connection, and no other", { timeout }, async () => {
    await using server = await startServer();
    const [attacker, other] = [connectHttp2(server.url), connectHttp2(server.url)];
    attacker.on("error", () => {});
    const closed = new Promise((resolve) => attacker.on("close", resolve));
    let count = 0;
    const flood = async () => {
      while (!attacker.closed && !attacker.destroyed) {
        const stream = attacker.request({ ...GRPC, ":path": pathOfMethod(METHODS.describeTable) });
        stream.on("error", () => {});
        stream.close(constants.NGHTTP2_CANCEL);
        count += 1;
        if (count % 50 === 0) await turn();
      }
    };
    await Promise.all([flood(), closed]);
    await assertServes(other);
    other.destroy();
  });

  it("ends the next connection from its address sooner, and serves calls on others", {
    timeout,
  }, async () => {
    await using server = await startServer();
    const resetsOf = async () => {
      const attacker = connectHttp2(server.url);
      attacker.on("error", () => {});
      const closed = new Promise((resolve) => attacker.on("close", resolve));
      await once(attacker, "remoteSettings");
      let resets = 0;
      while (!attacker.closed && !attacker.destroyed) {
        const stream = attacker.request({ ...GRPC, ":path": pathOfMethod(METHODS.describeTable) });
        stream.on("error", () => {});
        stream.close(constants.NGHTTP2_CANCEL);
        if (++resets % 10 === 0) await turn();
      }
      await closed;
      return resets;
    };
    const [first, second] = [await resetsOf(), await resetsOf()];
    assert.ok(second < first / 2, `${first} resets, and then ${second}`);
    const other = connectHttp2(server.url);
    for (let calls = 0; calls < 200; calls++) await assertServes(other);
    other.destroy();
  });

  it("makes later connections from its address begin one after the other, and closes those beyond sixteen", {
    timeout,
  }, async () => {
    const cells = openCells(RESETS_SHAPE);
    await using server = await startServer({ resetCells: cells });
    createResetAllowances(cells).noteBroken("127.0.0.1");
    const sessions = Array.from({ length: 20 }, () => connectHttp2(server.url));
    const begun = await Promise.all(
      sessions.map((session) => {
        session.on("error", () => {});
        return Promise.race([
          once(session, "remoteSettings").then(() => true),
          new Promise<boolean>((resolve) => session.on("close", () => resolve(false))),
        ]).catch(() => false);
      }),
    );
    for (const session of sessions) session.destroy();
    assert.equal(begun.filter(Boolean).length, 16);
  });

  it("leaves an address fewer resets after a connection that reset requests with their first bytes", {
    timeout,
  }, async () => {
    const cells = openCells(RESETS_SHAPE);
    await using server = await startServer({ resetCells: cells });
    const allowances = createResetAllowances(cells);
    const full = allowances.of("127.0.0.1");
    const { send, socket } = await openFlood(Number(new URL(server.url).port));
    const headers = {
      ":method": "GET",
      ":scheme": "http",
      ":path": "/openapi.json",
      ":authority": "localhost",
    };
    send({ headers, isReset: true }, 60);
    await expect.poll(() => allowances.of("127.0.0.1").streamResetBurst).toBeLessThan(full.streamResetBurst);
    socket.destroy();
  });
});
