import assert from "node:assert/strict";
import { connect } from "node:http2";
import { gzipSync } from "node:zlib";
import { create, toBinary } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, test } from "vitest";
import {
  type CountTableRowsRequest,
  CountTableRowsRequestSchema,
  CountTableRowsResponseSchema,
} from "../../src/gen/lance/namespace/v1/query_pb.ts";
import { encodeFrame } from "../../src/wires/grpc/frame.ts";
import { sendHttp } from "../support/http.ts";
import { fakeBackend, startServer, type TestServer } from "../support/server.ts";

const MIB = 1024 * 1024;
const SERVICE = "/lance.namespace.v1.LanceNamespaceService";

const deep = Buffer.alloc(4 * MIB, "[");
const names = Buffer.from(`{${Array.from({ length: MIB }, (_, i) => `"k${i}":1`).join(",")}}`);
/** A request of two million empty texts: its field 1 is the list of names in an id. */
const texts = Buffer.alloc(4 * MIB, Buffer.from([0x0a, 0]));

const JSON_BODIES = { "4 MiB of brackets": deep, "a million names": names } as const;

/** The ways in which messages arrive that are decoded as a whole. */
const WAYS: readonly {
  readonly name: string;
  readonly bodies: Readonly<Record<string, Buffer>>;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly encode: (body: Buffer) => Uint8Array;
}[] = [
  {
    name: "REST",
    bodies: JSON_BODIES,
    path: "/v1/table/t/describe",
    headers: { "content-type": "application/json" },
    encode: (body) => body,
  },
  {
    name: "REST with gzip",
    bodies: JSON_BODIES,
    path: "/v1/table/t/describe",
    headers: { "content-type": "application/json", "content-encoding": "gzip" },
    encode: (body) => gzipSync(body),
  },
  {
    name: "Connect in JSON",
    bodies: JSON_BODIES,
    path: `${SERVICE}/DescribeTable`,
    headers: { "content-type": "application/json" },
    encode: (body) => body,
  },
  {
    name: "Connect in JSON with gzip",
    bodies: JSON_BODIES,
    path: `${SERVICE}/DescribeTable`,
    headers: { "content-type": "application/json", "content-encoding": "gzip" },
    encode: (body) => gzipSync(body),
  },
  {
    name: "a stream of Connect in JSON",
    bodies: JSON_BODIES,
    path: `${SERVICE}/QueryTable`,
    headers: { "content-type": "application/connect+json" },
    encode: (body) => encodeFrame(body, false),
  },
  {
    name: "a stream of Connect in JSON that says it is packed",
    bodies: JSON_BODIES,
    path: `${SERVICE}/QueryTable`,
    headers: { "content-type": "application/connect+json", "content-encoding": "gzip" },
    encode: (body) => encodeFrame(body, false),
  },
  {
    name: "Connect in JSON that is packed by name only",
    bodies: JSON_BODIES,
    path: `${SERVICE}/DescribeTable`,
    headers: { "content-type": "application/json", "content-encoding": "identity" },
    encode: (body) => body,
  },
  {
    name: "a stream of Connect in JSON with gzip",
    bodies: JSON_BODIES,
    path: `${SERVICE}/QueryTable`,
    headers: { "content-type": "application/connect+json", "connect-content-encoding": "gzip" },
    encode: (body) => encodeFrame(gzipSync(body), true),
  },
  {
    name: "Connect in binary",
    bodies: { "millions of texts": texts },
    path: `${SERVICE}/DescribeTable`,
    headers: { "content-type": "application/proto" },
    encode: (body) => body,
  },
  {
    name: "gRPC-Web",
    bodies: { "millions of texts": texts },
    path: `${SERVICE}/DescribeTable`,
    headers: { "content-type": "application/grpc-web+proto" },
    encode: (body) => encodeFrame(body, false),
  },
];

const REFUSAL = /nested too deeply|has too much in it/;

describe("messages that cost more to read than their size tells", { timeout: 60_000 }, () => {
  let server: TestServer;
  let counted: CountTableRowsRequest | undefined;
  beforeAll(async () => {
    const countTableRows = async (request: CountTableRowsRequest) => {
      counted = request;
      return create(CountTableRowsResponseSchema, { count: 1n });
    };
    server = await startServer(fakeBackend({ countTableRows }));
  });
  afterAll(() => server.close());

  for (const { name, bodies, path, headers, encode } of WAYS) {
    for (const [what, body] of Object.entries(bodies)) {
      test(`${name}: ${what} are refused before they are decoded`, async () => {
        const answer = await sendHttp(server.port, { path, headers, body: encode(body) });
        const said = `${answer.bytes} ${decodeURIComponent(String(answer.headers["grpc-message"] ?? ""))}`;
        assert.match(decodeURIComponent(said), REFUSAL);
      });
    }
  }

  test("gRPC: millions of texts are refused before they are decoded", async () => {
    const session = connect(`http://127.0.0.1:${server.port}`);
    const stream = session.request({
      ":method": "POST",
      ":path": `${SERVICE}/DescribeTable`,
      "content-type": "application/grpc",
    });
    const answered = new Promise<Record<string, unknown>>((resolve) => {
      stream.on("response", resolve);
    });
    stream.end(encodeFrame(texts, false));
    const headers = await answered;
    assert.equal(headers["grpc-status"], "3");
    assert.match(decodeURIComponent(String(headers["grpc-message"])), REFUSAL);
    session.destroy();
  });

  test("REST: a long body is read like a short one", async () => {
    const count = async (body: string) => {
      const { status, bytes } = await sendHttp(server.port, {
        path: "/v1/table/t/count_rows",
        headers: { "content-type": "application/json" },
        body,
      });
      return { status, said: String(bytes) };
    };
    const predicate = "é".repeat(MIB);
    const body = (version: string, ignored = "[]") =>
      `{"predicate":"${predicate}","ignored":${ignored},"version":${version}}`;
    assert.equal((await count(body("9007199254740993"))).status, 200);
    assert.deepEqual([counted?.version, counted?.predicate], [9007199254740993n, predicate]);

    const many = JSON.stringify(Array(25_000).fill(1));
    assert.equal((await count(body("7", many))).status, 200);
    assert.equal(counted?.version, 7n);
    assert.match((await count(body("9007199254740993", many))).said, /more than 53 bits/);
    assert.match((await count(body("true"))).said, /version/);
    assert.match((await count(`${body("7")}}`)).said, /request body is not valid JSON/);
    assert.match((await count(`[${body("7")}]`)).said, /must be a JSON object/);
  });

  test("Connect: a message in JSON is smaller than a binary one may be", async () => {
    const predicate = "x".repeat(3.5 * MIB);
    const path = `${SERVICE}/CountTableRows`;
    const send = (type: string, body: Uint8Array) =>
      sendHttp(server.port, { path, headers: { "content-type": type }, body });
    const binary = toBinary(
      CountTableRowsRequestSchema,
      create(CountTableRowsRequestSchema, { id: ["t"], predicate }),
    );
    assert.equal((await send("application/proto", binary)).status, 200);
    const json = (text: string) => Buffer.from(JSON.stringify({ id: ["t"], predicate: text }));
    assert.equal((await send("application/json", json(predicate.slice(0, 2.5 * MIB)))).status, 200);
    const refused = await send("application/json", json(predicate));
    assert.match(String(refused.bytes), /resource_exhausted.*a message in JSON is larger than 3145728 bytes/);
  });

  test("an error does not repeat megabytes of a request", async () => {
    const long = "k".repeat(MIB);
    const bodies = [{ context: { [long]: 1 } }, { branch: { [long]: 1 } }, { id: [long] }, { context: long }];
    for (const body of bodies) {
      const answer = await sendHttp(server.port, {
        path: "/v1/table/t/describe",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      assert.equal(answer.status, 400);
      assert.ok(answer.bytes.byteLength < 4000, `${answer.bytes.byteLength} bytes`);
    }
  });
});
