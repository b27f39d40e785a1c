import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { create, toBinary } from "@bufbuild/protobuf";
import pino from "pino";
import { afterAll, beforeAll, describe, test } from "vitest";
import { createDirectoryBackend } from "../../src/backends/dir/index.ts";
import { createReadAhead, type ReadAhead } from "../../src/backends/dir/operations/read/read-ahead.ts";
import { QueryTableRequestSchema } from "../../src/gen/lance/namespace/v1/query_pb.ts";
import { wideStream } from "../support/arrow.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { sendHttp } from "../support/http.ts";
import { startServer, type TestServer } from "../support/server.ts";

const MIB = 1024 * 1024;
const ARROW = "application/vnd.apache.arrow.stream";
const timeout = 60_000;

/** Results that are larger than the buffers of all sockets on the way, and memory for two of them. */
describe("results that are not read to their end", () => {
  let server: TestServer;
  let readAhead: ReadAhead;
  let unread = 0;
  let remove: () => Promise<void>;
  const body = wideStream(16 * MIB);
  beforeAll(async () => {
    const directory = await temporaryDirectory();
    remove = directory.remove;
    readAhead = countingUnread(createReadAhead({ maxBytes: 48 * MIB, stallMs: 100, everyMs: 20 }));
    const log = pino({ level: "silent" });
    server = await startServer(await createDirectoryBackend({ root: directory.path, log, readAhead }));
    const headers = { "content-type": ARROW };
    const answer = await sendHttp(server.port, { path: "/v1/table/t/create", body, headers });
    assert.equal(answer.status, 200);
  });
  afterAll(async () => {
    await server.close();
    await remove();
  });

  const query = { path: "/v1/table/t/query", headers: { accept: ARROW }, body: "{}" };
  const rest = () => {
    const socket = connect(server.port, "127.0.0.1");
    socket.on("error", () => {});
    socket.write(
      `POST ${query.path} HTTP/1.1\r\nhost: localhost\r\naccept: ${ARROW}\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}`,
    );
    return socket.pause();
  };
  const rpc = (contentType: string) => () => {
    const session = connectHttp2(`http://127.0.0.1:${server.port}`);
    session.on("error", () => {});
    const path = "/lance.namespace.v1.LanceNamespaceService/QueryTable";
    const headers = { ":method": "POST", ":path": path, "content-type": contentType, te: "trailers" };
    const message = toBinary(QueryTableRequestSchema, create(QueryTableRequestSchema, { id: ["t"] }));
    const prefix = Buffer.alloc(5);
    prefix.writeUInt32BE(message.length, 1);
    const stream = session.request(headers);
    stream.on("error", () => {});
    stream.end(Buffer.concat([prefix, message]));
    return session;
  };
  const readers = { REST: rest, gRPC: rpc("application/grpc"), Connect: rpc("application/connect+proto") };

  /** Counts the results that are left before their end, whose room only the garbage collector gives back. */
  function countingUnread(memory: ReadAhead): ReadAhead {
    return {
      get held() {
        return memory.held;
      },
      tryEnter: memory.tryEnter,
      enterForWork: memory.enterForWork,
      count: memory.count,
      async enter(...args) {
        const place = await memory.enter(...args);
        const leave = (rest?: object) => {
          if (rest !== undefined) unread += 1;
          place.leave(rest);
        };
        return { ...place, leave };
      },
    };
  }

  for (const form of ["stream", "file"]) {
    test(`a result that was read to its end as an IPC ${form} gives its room back at once`, {
      timeout,
    }, async () => {
      const accept = `application/vnd.apache.arrow.${form}`;
      const answer = await sendHttp(server.port, { ...query, headers: { accept } });
      assert.equal(answer.headers["content-type"], accept);
      assert.deepEqual({ unread, held: readAhead.held }, { unread: 0, held: 0 });
    });
  }

  for (const [protocol, open] of Object.entries(readers)) {
    test(`${protocol}: stalled readers make room for an active one`, { timeout }, async () => {
      const stalled = Array.from({ length: 6 }, () => open());
      while (readAhead.held < 32 * MIB) await sendHttp(server.port, { method: "GET", path: "/healthz" });
      const answer = await sendHttp(server.port, query);
      assert.equal(answer.status, 200);
      assert.ok(answer.bytes.length > body.length);
      for (const reader of stalled) reader.destroy();
    });
  }

  test("results that their clients have left make room", { timeout }, async () => {
    for (let count = 0; count < 10; count++) {
      const socket = rest().resume();
      await once(socket, "data");
      socket.destroy();
    }
    assert.equal((await sendHttp(server.port, query)).status, 200);
  });

  test("small results need no room", { timeout }, async () => {
    const stalled = Array.from({ length: 6 }, rest);
    while (readAhead.held < 32 * MIB) await sendHttp(server.port, { method: "GET", path: "/healthz" });
    for (let count = 0; count < 20; count++) {
      const answer = await sendHttp(server.port, { ...query, body: '{"k": 10}' });
      assert.equal(answer.status, 200);
    }
    for (const reader of stalled) reader.destroy();
  });
});
