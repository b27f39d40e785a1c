import assert from "node:assert/strict";
import { once } from "node:events";
import { Agent, request } from "node:http";
import { connect } from "node:http2";
import { setTimeout as sleep } from "node:timers/promises";
import { create, toBinary } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, test } from "vitest";
import { NamespaceExistsResponseSchema } from "../../src/gen/lance/namespace/v1/namespace_pb.ts";
import {
  QueryTableRequestSchema,
  QueryTableResponseSchema,
} from "../../src/gen/lance/namespace/v1/query_pb.ts";
import { ListTablesResponseSchema } from "../../src/gen/lance/namespace/v1/table_pb.ts";
import { sendHttp } from "../support/http.ts";
import { fakeBackend, startServer, type TestServer } from "../support/server.ts";

const MIB = 1024 * 1024;
const PIECE = Buffer.alloc(MIB / 16);
/**
 * Maximum size of the sockets' buffers and of HTTP/2's windows, in bytes; without backpressure the answer would be
 * endless.
 */
const BOUND = 64 * MIB;

/** Time limit that fails the test of an answer that never ends. */
const timeout = 60_000;

/** The answer of the running call: the number of bytes that the wire has taken, and the answer's end. */
let answer = { bytes: 0, ended: Promise.withResolvers<void>() };

const backend = fakeBackend({
  async *queryTable() {
    try {
      for (;;) {
        const data = { contentType: "application/vnd.apache.arrow.stream", data: PIECE };
        yield create(QueryTableResponseSchema, { data });
        answer.bytes += PIECE.length;
        if (answer.bytes > BOUND) throw new Error("nobody holds this answer back");
      }
    } finally {
      answer.ended.resolve();
    }
  },
  listTables: async () => create(ListTablesResponseSchema, { tables: TABLES }),
});

const TABLES = Array.from({ length: 400_000 }, (_, i) => `${"a long name ".repeat(8)}${i}`);
const LIST = "/v1/namespace/$/table/list";

/** Returns the request of gRPC and of Connect's streams: a message in its envelope. */
function envelope(): Buffer {
  const message = toBinary(QueryTableRequestSchema, create(QueryTableRequestSchema, { id: ["t"] }));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

const RPC = "/lance.namespace.v1.LanceNamespaceService/QueryTable";
const calls = {
  REST: [{ path: "/v1/table/t/query", accept: "application/vnd.apache.arrow.stream" }, Buffer.from("{}")],
  gRPC: [{ path: RPC, "content-type": "application/grpc", te: "trailers" }, envelope()],
  Connect: [{ path: RPC, "content-type": "application/connect+proto" }, envelope()],
  "gRPC-Web": [{ path: RPC, "content-type": "application/grpc-web+proto" }, envelope()],
} as const;

/** Sends a request over HTTP/2 whose answer the client never reads, on a new connection or on a given one. */
function unread(port: number, protocol: keyof typeof calls, session = connect(`http://127.0.0.1:${port}`)) {
  const [{ path, ...headers }, body] = calls[protocol];
  const stream = session.request({ ":method": "POST", ":path": path, ...headers });
  stream.on("error", () => {});
  stream.end(body);
  return { session, stream };
}

describe("clients that do not read", () => {
  let server: TestServer;
  const agent = new Agent({ keepAlive: true });
  beforeAll(async () => {
    server = await startServer(backend);
  });
  afterAll(async () => {
    agent.destroy();
    await server.close();
  });

  /** Resolves when the answer has stopped growing while the server works on other requests. */
  async function stalled(): Promise<void> {
    for (let quiet = 0, seen = -1; quiet < 20; quiet += 1) {
      if (answer.bytes !== seen) [quiet, seen] = [0, answer.bytes];
      await sendHttp(server.port, { path: "/healthz", method: "GET", agent });
    }
  }

  async function assertHeldBack(leave: () => void): Promise<void> {
    await stalled();
    assert.ok(answer.bytes <= BOUND);
    leave();
    await answer.ended.promise;
  }

  for (const [protocol, [{ path, ...headers }, body]] of Object.entries(calls)) {
    test(`${protocol}: an answer over HTTP/2 waits for its reader, and ends when the reader leaves`, {
      timeout,
    }, async () => {
      answer = { bytes: 0, ended: Promise.withResolvers() };
      const session = connect(`http://127.0.0.1:${server.port}`);
      const stream = session.request({ ":method": "POST", ":path": path, ...headers });
      stream.on("error", () => {});
      stream.end(body);
      await once(stream, "response");
      await assertHeldBack(() => session.destroy());
    });

    if (protocol === "gRPC") continue;
    test(`${protocol}: an answer over HTTP/1.1 waits for its reader, and ends when the reader leaves`, {
      timeout,
    }, async () => {
      answer = { bytes: 0, ended: Promise.withResolvers() };
      const outgoing = request({ host: "127.0.0.1", port: server.port, method: "POST", path, headers });
      outgoing.on("error", () => {});
      outgoing.end(body);
      const [response] = await once(outgoing, "response");
      response.on("error", () => {});
      await assertHeldBack(() => outgoing.destroy());
    });
  }
});

describe("clients that read nothing for too long", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer(backend, { silenceMs: 200 });
  });
  afterAll(() => server.close());

  for (const protocol of Object.keys(calls) as (keyof typeof calls)[]) {
    test(`${protocol} over HTTP/2: the stream is reset and never ended, and the connection continues`, {
      timeout,
    }, async () => {
      answer = { bytes: 0, ended: Promise.withResolvers() };
      const { session, stream } = unread(server.port, protocol);
      await answer.ended.promise;
      stream.resume();
      await new Promise((resolve) => stream.on("close", resolve));
      assert.notEqual(stream.rstCode, 0);
      const probe = session.request({ ":path": "/healthz" });
      const [headers] = await once(probe, "response");
      assert.equal(headers[":status"], 200);
      session.destroy();
    });

    if (protocol === "gRPC") continue;
    test(`${protocol} over HTTP/1.1: the connection is closed in the middle of the answer`, {
      timeout,
    }, async () => {
      answer = { bytes: 0, ended: Promise.withResolvers() };
      const [{ path, ...headers }, body] = calls[protocol];
      const outgoing = request({ host: "127.0.0.1", port: server.port, method: "POST", path, headers });
      outgoing.on("error", () => {});
      outgoing.end(body);
      const [response] = await once(outgoing, "response");
      response.on("error", () => {});
      await answer.ended.promise;
      response.resume();
      await new Promise((resolve) => response.on("close", resolve));
      assert.equal(response.complete, false);
    });
  }
});

describe("clients that read slowly", () => {
  const backend = fakeBackend({
    async *queryTable() {
      const data = { contentType: "application/vnd.apache.arrow.stream", data: Buffer.alloc(3 * MIB) };
      yield create(QueryTableResponseSchema, { data });
    },
  });

  test("get the largest message over HTTP/2, though it takes longer than they may be silent", {
    timeout,
  }, async () => {
    const server = await startServer(backend, { silenceMs: 6_000 });
    const read = async (protocol: keyof typeof calls) => {
      const { session, stream } = unread(server.port, protocol);
      const began = performance.now();
      let bytes = 0;
      for await (const piece of stream) {
        bytes += (piece as Buffer).length;
        // 320 kB/s, also on a busy machine.
        await sleep(Math.max(0, began + bytes / 320 - performance.now()));
      }
      session.destroy();
      return [protocol, stream.rstCode, bytes >= 3 * MIB];
    };
    const protocols = Object.keys(calls) as (keyof typeof calls)[];
    assert.deepEqual(
      await Promise.all(protocols.map(read)),
      protocols.map((protocol) => [protocol, 0, true]),
    );
    await server.close();
  });
});

describe("a list of 40 MB over REST", () => {
  test("has no end over HTTP/2 for a client that reads nothing for too long, and the connection continues", {
    timeout,
  }, async () => {
    const server = await startServer(backend, { silenceMs: 200 });
    const session = connect(`http://127.0.0.1:${server.port}`);
    const silent = session.request({ ":path": LIST });
    silent.on("error", () => {});
    await new Promise((resolve) => silent.on("close", resolve));
    assert.notEqual(silent.rstCode, 0);
    const [probed] = await once(session.request({ ":path": "/healthz" }), "response");
    assert.equal(probed[":status"], 200);
    session.destroy();
    await server.close();
  });

  test("arrives over HTTP/2", { timeout }, async () => {
    // A busy machine may pause longer between two reads than the client above may be silent.
    const server = await startServer(backend, { silenceMs: timeout });
    const session = connect(`http://127.0.0.1:${server.port}`);
    const length = Buffer.byteLength(JSON.stringify({ tables: TABLES }));
    const reader = session.request({ ":path": LIST });
    const [head] = await once(reader, "response");
    assert.equal(head["content-length"], String(length));
    const pieces: Buffer[] = [];
    for await (const piece of reader) pieces.push(piece as Buffer);
    assert.deepEqual(JSON.parse(Buffer.concat(pieces).toString()), { tables: TABLES });

    const asked = session.request({ ":path": LIST, ":method": "HEAD" });
    const [same] = await once(asked, "response");
    assert.equal(same["content-length"], String(length));
    assert.equal((await asked.toArray()).length, 0);
    session.destroy();
    await server.close();
  });
});

describe("many clients that do not read on one connection", () => {
  test("other calls of the connection succeed", { timeout: 60_000 }, async () => {
    let waiting = 0;
    const server = await startServer(
      fakeBackend({
        async *queryTable() {
          for (;;) {
            const data = { contentType: "application/vnd.apache.arrow.stream", data: Buffer.alloc(MIB) };
            yield create(QueryTableResponseSchema, { data });
            waiting += 1;
          }
        },
        namespaceExists: async () => create(NamespaceExistsResponseSchema),
      }),
    );
    const session = connect(`http://127.0.0.1:${server.port}`);
    const streams = Array.from({ length: 40 }, () => unread(server.port, "gRPC", session).stream);
    await Promise.all(streams.map((stream) => once(stream, "response")));
    assert.equal(waiting, 0, "a reader got more than it took");
    for (let count = 0; count < 100; count++) {
      const path = "/lance.namespace.v1.LanceNamespaceService/NamespaceExists";
      const headers = { "content-type": "application/grpc", te: "trailers" };
      const stream = session.request({ ":method": "POST", ":path": path, ...headers });
      stream.end(Buffer.alloc(5)).resume();
      const [trailers] = await once(stream, "trailers");
      assert.equal(trailers["grpc-status"], "0");
    }
    session.destroy();
    await server.close();
  });
});
