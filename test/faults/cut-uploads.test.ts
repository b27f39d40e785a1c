import assert from "node:assert/strict";
import { once } from "node:events";
import { request as http1 } from "node:http";
import { type ClientHttp2Session, connect, constants } from "node:http2";
import { create, toBinary } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, test } from "vitest";
import {
  InsertIntoTableRequestSchema,
  InsertIntoTableResponseSchema,
} from "../../src/gen/lance/namespace/v1/data_pb.ts";
import { encodeFrame } from "../../src/wires/grpc/frame.ts";
import { people, personFile, personStream } from "../support/arrow.ts";
import { jsonOf, sendHttp } from "../support/http.ts";
import {
  type DirectoryServer,
  fakeBackend,
  startDirectoryServer,
  startServer,
  type TestServer,
} from "../support/server.ts";

const INSERT = "/lance.namespace.v1.LanceNamespaceService/InsertIntoTable";
const ARROW = "application/vnd.apache.arrow.stream";

/** Number of times that each client leaves. */
const ROUNDS = 20;

/** A stream without its end marker: every message of it is whole. */
const CUT = Buffer.from(personStream(people(50))).subarray(0, -8);

const message = (data: Uint8Array) =>
  encodeFrame(
    toBinary(
      InsertIntoTableRequestSchema,
      create(InsertIntoTableRequestSchema, { id: ["t"], data: { data } }),
    ),
    false,
  );

/** Functions that send an upload over each wire. */
const WIRES = {
  REST: { path: "/v1/table/t/insert", type: ARROW, encode: (body: Uint8Array) => body },
  Connect: { path: INSERT, type: "application/connect+proto", encode: message },
  "gRPC-Web": { path: INSERT, type: "application/grpc-web+proto", encode: message },
  gRPC: { path: INSERT, type: "application/grpc", encode: message },
} as const;

/** The outcomes of the backend's uploads: the bytes of a complete body, or the error of an incomplete one. */
const outcomes: unknown[] = [];
let told = () => {};

const backend = fakeBackend({
  async insertIntoTable(_, data) {
    let outcome: unknown = 0;
    try {
      for await (const piece of data) outcome = (outcome as number) + piece.byteLength;
      return create(InsertIntoTableResponseSchema);
    } catch (thrown) {
      outcome = thrown;
      throw thrown;
    } finally {
      outcomes.push(outcome);
      told();
    }
  },
});

async function outcome(): Promise<unknown> {
  while (outcomes.length === 0) {
    await new Promise<void>((resolve) => {
      told = resolve;
    });
  }
  return outcomes.shift();
}

describe("uploads over HTTP/2 without a length", { timeout: 60_000 }, () => {
  let server: TestServer;
  let session: ClientHttp2Session;
  beforeAll(async () => {
    server = await startServer(backend);
    session = connect(`http://127.0.0.1:${server.port}`);
    // A call that leaves before the server has opened the connection never starts, and has no outcome.
    await once(session, "remoteSettings");
  });
  afterAll(async () => {
    session.destroy();
    await server.close();
  });

  function open({ path, type }: { path: string; type: string }, headers = {}) {
    const stream = session.request({ ":method": "POST", ":path": path, "content-type": type, ...headers });
    stream.on("error", () => {});
    return stream;
  }

  for (const [name, wire] of Object.entries(WIRES)) {
    test(`${name}: a body whose client leaves is never accepted as complete`, async () => {
      for (let round = 0; round < ROUNDS; round++) {
        const stream = open(wire);
        await new Promise((resolve) => stream.write(wire.encode(CUT), resolve));
        // Node ends the stream before it resets it.
        stream.close(constants.NGHTTP2_CANCEL);
        assert.ok((await outcome()) instanceof Error);
      }
    });

    test(`${name}: a stream that ends without its marker is refused`, async () => {
      const stream = open(wire);
      stream.end(wire.encode(CUT));
      stream.resume();
      assert.match(String(await outcome()), /ends before its Arrow data does/);
      await once(stream, "close");
    });

    test(`${name}: a stream with its marker, a stream from before Arrow 0.15 and a file are accepted`, async () => {
      const whole = Buffer.from(personStream(people(50)));
      const old = Buffer.concat([CUT, Buffer.alloc(4)]);
      for (const body of [whole, old, personFile(people(50))]) {
        const stream = open(wire);
        stream.end(wire.encode(body));
        stream.resume();
        assert.equal(await outcome(), body.byteLength);
        await once(stream, "close");
      }
    });
  }

  test("REST: a body with its length needs no marker, and a shorter body is refused", async () => {
    const length = { "content-length": CUT.byteLength };
    const whole = open(WIRES.REST, length);
    whole.end(CUT);
    assert.equal(await outcome(), CUT.byteLength);
    const cut = open(WIRES.REST, length);
    await new Promise((resolve) => cut.write(CUT.subarray(0, 500), resolve));
    cut.close(constants.NGHTTP2_CANCEL);
    assert.ok((await outcome()) instanceof Error);
  });
});

describe("uploads over HTTP/1.1", { timeout: 60_000 }, () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer(backend);
  });
  afterAll(() => server.close());

  test("a complete chunked body needs no marker, and a cut one is refused", async () => {
    async function* pieces() {
      yield CUT;
    }
    const headers = { "content-type": ARROW };
    const path = WIRES.REST.path;
    assert.equal((await sendHttp(server.port, { path, headers, body: pieces() })).status, 200);
    assert.equal(await outcome(), CUT.byteLength);
    for (const length of [{}, { "content-length": CUT.byteLength + 1 }]) {
      const outgoing = http1({ port: server.port, method: "POST", path, headers: { ...headers, ...length } });
      outgoing.on("error", () => {});
      await new Promise((resolve) => outgoing.write(CUT, resolve));
      outgoing.destroy();
      assert.ok((await outcome()) instanceof Error);
    }
  });
});

describe("a directory whose clients go away", { timeout: 60_000 }, () => {
  let server: DirectoryServer;
  let session: ClientHttp2Session;
  beforeAll(async () => {
    server = await startDirectoryServer();
    session = connect(`http://127.0.0.1:${server.port}`);
  });
  afterAll(async () => {
    session.destroy();
    await server.close();
  });

  const json = async (path: string, body: object) =>
    sendHttp(server.port, {
      path,
      body: JSON.stringify(body),
      headers: { "content-type": "application/json" },
    });

  /** Sends a cut body and waits until the server has refused it. */
  async function sendCut(path: string): Promise<void> {
    const stream = session.request({ ":method": "POST", ":path": path, "content-type": ARROW });
    stream.end(CUT);
    const [headers] = await once(stream, "response");
    stream.resume();
    assert.equal(headers[":status"], 400);
  }

  test("a cut body is never committed, created or kept as a part", async () => {
    await sendCut("/v1/table/t/create");
    assert.equal((await json("/v1/table/t/exists", {})).status, 404);
    const headers = { "content-type": ARROW };
    const body = personStream(people(3));
    assert.equal((await sendHttp(server.port, { path: "/v1/table/t/create", headers, body })).status, 200);
    await sendCut("/v1/table/t/insert");
    await sendCut("/v1/table/t/insert?mode=overwrite");
    await sendCut("/v1/table/t/merge_insert?on=id&when_not_matched_insert_all=true");
    assert.equal(String((await json("/v1/table/t/count_rows", {})).bytes), "3");

    const begun = jsonOf(await json("/v1/table/t/multipart_write/create", {}));
    const id = String(begun["upload_id"]);
    await sendCut(`/v1/table/t/insert?upload_id=${id}&upload_part_id=1`);
    const completed = await json("/v1/table/t/multipart_write/complete", { upload_id: id });
    assert.match(String(completed.bytes), /the write has no parts/);
  });
});
