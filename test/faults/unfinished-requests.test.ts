import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { create, toBinary } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, test } from "vitest";
import {
  CreateTableRequestSchema,
  CreateTableResponseSchema,
} from "../../src/gen/lance/namespace/v1/data_pb.ts";
import { LanceNamespaceService } from "../../src/gen/lance/namespace/v1/service_pb.ts";
import { DescribeTableResponseSchema } from "../../src/gen/lance/namespace/v1/table_pb.ts";
import { encodeFrame } from "../../src/wires/grpc/frame.ts";
import { rawConnection } from "../fixtures/server/server.ts";
import { inFastTime } from "../support/fast-time.ts";
import { fakeBackend, startServer, type TestServer } from "../support/server.ts";
import { until } from "../support/until.ts";

const KIB = 1024;
const MAX_BUFFERED = 2_048 * KIB;
/** Size of each unfinished request: four of them take all memory. */
const SENT = 500 * KIB;
const SERVICE = "/lance.namespace.v1.LanceNamespaceService";
const ARROW = "application/vnd.apache.arrow.stream";
const { input } = LanceNamespaceService.method.describeTable;
const [STRANGER, OTHER] = ["127.0.0.2", "127.0.0.3"];

/** Answers of messages that come too late. */
const LATE = / 504 |:504|grpc-status":"4"|grpc-status: 4/;

interface Kind {
  readonly path: string;
  readonly type: string;
  readonly version: 1 | 2;
  /** Begins a body that does not end. */
  readonly begun: Buffer;
}

const json = Buffer.from(`{"context":{"a":"${"x".repeat(SENT)}`);
const [frame, binary] = [Buffer.alloc(SENT), Buffer.alloc(SENT)];
frame.writeUInt32BE(2 * SENT, 1);
const upload = toBinary(
  CreateTableRequestSchema,
  create(CreateTableRequestSchema, { id: ["t"], data: { contentType: ARROW, data: Buffer.alloc(SENT) } }),
);
const rest = { path: "/v1/table/t/describe", type: "application/json", begun: json };
const connectJson = { path: `${SERVICE}/DescribeTable`, type: "application/json", begun: json };
const connectBinary = { path: `${SERVICE}/DescribeTable`, type: "application/proto", begun: binary };
const grpcWeb = { path: `${SERVICE}/DescribeTable`, type: "application/grpc-web+proto", begun: frame };
const restUpload = { path: "/v1/table/t/create", type: ARROW, begun: binary };

const KINDS: Readonly<Record<string, Kind>> = {
  "REST over HTTP/1.1": { ...rest, version: 1 },
  "REST over HTTP/2": { ...rest, version: 2 },
  "Connect in JSON": { ...connectJson, version: 1 },
  "Connect in binary over HTTP/2": { ...connectBinary, version: 2 },
  "gRPC-Web": { ...grpcWeb, version: 1 },
  "gRPC-Web over HTTP/2": { ...grpcWeb, version: 2 },
  gRPC: { ...grpcWeb, type: "application/grpc", version: 2 },
  "a query over gRPC": { ...grpcWeb, path: `${SERVICE}/QueryTable`, type: "application/grpc", version: 2 },
  "an upload over REST": { ...restUpload, version: 1 },
  "an upload over REST and HTTP/2": { ...restUpload, version: 2 },
  "an upload over gRPC": {
    path: `${SERVICE}/CreateTable`,
    type: "application/grpc",
    version: 2,
    begun: encodeFrame(upload, false),
  },
};

/** Begins requests that do not end, from the address of a stranger. */
async function begin(port: number, { path, type, version, begun }: Kind, count: number) {
  if (version === 1) {
    const head = `POST ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: ${type}\r\ncontent-length: ${3 * SENT}\r\n\r\n`;
    const all = Array.from({ length: count }, () => rawConnection(port, STRANGER));
    for (const { socket } of all) socket.write(Buffer.concat([Buffer.from(head), begun]));
    const answers = () => all.map(({ received }) => received()).filter((text) => text !== "");
    return { answers, end: () => all.forEach(({ socket }) => void socket.destroy()) };
  }
  const createConnection = () => connect({ port, host: "127.0.0.1", localAddress: STRANGER });
  const session = connectHttp2(`http://127.0.0.1:${port}`, { createConnection });
  session.on("error", () => {});
  await once(session, "remoteSettings");
  const answers: string[] = [];
  for (let made = 0; made < count; made++) {
    const stream = session.request({
      ":method": "POST",
      ":path": path,
      "content-type": type,
      te: "trailers",
    });
    stream.on("error", () => {}).on("response", (headers) => answers.push(JSON.stringify(headers)));
    stream.on("trailers", (headers) => answers.push(JSON.stringify(headers)));
    stream.on("data", (piece) => answers.push(String(piece)));
    stream.write(begun);
  }
  return { answers: () => answers, end: () => session.destroy() };
}

/** Describes a table with a message of an ordinary size, and returns the answer. */
async function describeTable(port: number, { path, type, version }: Kind, bytes: number): Promise<string> {
  const context = { filler: "x".repeat(bytes) };
  const isGrpc = /grpc/.test(type) || path.endsWith("CreateTable");
  const message = Buffer.from(toBinary(input, create(input, { id: ["t"], context })));
  const isBinary = type.includes("proto");
  const text = Buffer.from(JSON.stringify(path.startsWith("/v1") ? { context } : { id: ["t"], context }));
  const body = isGrpc ? encodeFrame(message, false) : isBinary ? message : text;
  const target = isGrpc ? `${SERVICE}/DescribeTable` : path.replace("/create", "/describe");
  const contentType = type === ARROW ? "application/json" : type;
  if (version === 1) {
    const { socket, received } = rawConnection(port, OTHER);
    const head = `POST ${target} HTTP/1.1\r\nhost: localhost\r\ncontent-type: ${contentType}\r\ncontent-length: ${body.length}\r\n\r\n`;
    socket.write(Buffer.concat([Buffer.from(head), body]));
    await until(() => received().includes("there") || / [45]\d\d |error/.test(received()));
    socket.destroy();
    return received();
  }
  const createConnection = () => connect({ port, host: "127.0.0.1", localAddress: OTHER });
  const session = connectHttp2(`http://127.0.0.1:${port}`, { createConnection });
  const stream = session.request({ ":method": "POST", ":path": target, "content-type": contentType });
  let received = "";
  stream.on("response", (headers) => {
    received += JSON.stringify(headers);
  });
  stream.on("data", (piece) => {
    received += piece;
  });
  stream.end(body);
  await once(stream, "close");
  session.destroy();
  return received;
}

describe("requests that do not end", () => {
  let server: TestServer;
  beforeEach(async () => {
    const backend = fakeBackend({
      describeTable: async () => create(DescribeTableResponseSchema, { location: "there" }),
      async createTable(_request, data, call) {
        // A backend keeps what it gets until it writes a part.
        for await (const _ of data) call.signal.throwIfAborted();
        return create(CreateTableResponseSchema, {});
      },
    });
    server = await startServer(backend, { maxBufferedBytes: MAX_BUFFERED });
  });
  afterEach(() => server.close());

  for (const [name, kind] of Object.entries(KINDS)) {
    test(`${name}: they leave room for the calls of another address, and the oldest of them ends`, async () => {
      const stranger = await begin(server.port, kind, 12);
      // Their sender has all that there is: further ones are refused.
      await until(() =>
        stranger.answers().some((text) => / 429 |:429|grpc-status":"8"|grpc-status: 8/.test(text)),
      );
      const before = stranger.answers().length;
      for (const bytes of [100 * KIB, 400 * KIB]) {
        const answer = await describeTable(server.port, kind, bytes);
        assert.match(answer, /there/, answer);
      }
      await until(() => stranger.answers().length > before);
      stranger.end();
    });
  }

  for (const [name, kind] of Object.entries(KINDS).filter(([name]) => !name.startsWith("an upload"))) {
    test(`${name}: a message that does not end in two minutes ends its call alone, also one without a byte`, async () => {
      const bodies = [Buffer.alloc(0), kind.begun];
      const isLate = ({ answers }: { answers(): string[] }) => answers().some((text) => LATE.test(text));
      // The gateway sets its timers in fast time, too.
      const clients = await inFastTime(async () => {
        const begun = await Promise.all(
          bodies.map((body) => begin(server.port, { ...kind, begun: body }, 1)),
        );
        await until(() => begun.every(isLate));
        return begun;
      });
      for (const client of clients) client.end();
      assert.match(await describeTable(server.port, kind, KIB), /there/);
    });
  }

  test("a sender with as much as the others keeps its requests, and its next one is refused", async () => {
    const kind = KINDS["REST over HTTP/1.1"] as Kind;
    const own = await begin(server.port, kind, 2);
    const large = await describeTable(server.port, kind, 1_900 * KIB);
    assert.match(large, /429/);
    assert.deepEqual(own.answers(), []);
    own.end();
  });
});
