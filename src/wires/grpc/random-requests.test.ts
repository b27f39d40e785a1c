import assert from "node:assert/strict";
import {
  type ClientHttp2Session,
  connect,
  constants,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from "node:http2";
import { inspect } from "node:util";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { type handleUnaryCall, Server, ServerCredentials } from "@grpc/grpc-js";
import { onTestFinished, test } from "vitest";
import { createRandom, type Random } from "../../../test/support/random.ts";
import { messagesIn, randomFrames } from "../../../test/support/random-frames.ts";
import { seedOf } from "../../../test/support/seed.ts";
import {
  type DescribeTableRequest,
  DescribeTableRequestSchema,
  type DescribeTableResponse,
  DescribeTableResponseSchema,
} from "../../gen/lance/namespace/v1/table_pb.ts";
import { LanceError } from "../../namespace/errors.ts";
import { codecs, fakeService, METHODS, pathOfMethod, startGrpc } from "./fixture.ts";

const ROUNDS = Number(process.env["GRPC_ROUNDS"] ?? 25);
/** Requests at a time, on one connection. */
const CALLS = 20;
const MAX_MESSAGE_BYTES = 1_000;
/** Prefix of a message. */
const HEAD_BYTES = 5;

const DESCRIBE = pathOfMethod(METHODS.describeTable);
const named = (...id: string[]) =>
  Buffer.from(toBinary(DescribeTableRequestSchema, create(DescribeTableRequestSchema, { id })));
const MESSAGES = [
  ...[named("t"), named("t"), named("a", "é"), named(), named("gone"), named("broken")],
  ...[MAX_MESSAGE_BYTES - 3, MAX_MESSAGE_BYTES - 2, 70_000].map((size) => named("t".repeat(size))),
  ...["0f", "0a7f74", "fa3f0161"].map((hex) => Buffer.from(hex, "hex")),
];
const PATHS = [
  ...[
    "/lance.namespace.v1.LanceNamespaceService/Nothing",
    "/other.Service/DescribeTable",
    `${DESCRIBE}/`,
    "/",
  ],
  ...[DESCRIBE.toLowerCase(), `${DESCRIBE}?a=b`, "//", `/${DESCRIBE}`, "*"],
];
const TYPES = [
  "application/grpc+proto",
  "application/grpc;x=y",
  "application/json",
  "text/plain",
  "application/grp",
  "",
];
const TIMEOUTS = [
  "1H",
  "60S",
  "99999999m",
  "100000000u",
  "5",
  "S",
  "123456789S",
  "-1S",
  "1.5S",
  " 1S",
  "1s",
  "1h",
  "",
];
const ENCODINGS = ["identity", "gzip", "snappy", "GZIP", "br"];
const HEADERS: readonly OutgoingHttpHeaders[] = [
  ...[
    { "x-a": "1" },
    { "x-a": ["1", "2"] },
    { "x-a-bin": "AAE" },
    { "x-a-bin": "no base64" },
    { "x-a-bin": "AAE,AA" },
  ],
  ...[
    { te: undefined },
    { "grpc-accept-encoding": "gzip" },
    { "grpc-accept-encoding": "br,,;" },
    { authorization: "Bearer" },
  ],
  ...[{ "user-agent": "" }, { "x-long": "l".repeat(5_000) }, { cookie: "a=b" }, { "grpc-x": "1" }],
  ...[
    { "x-request-timeout-ms": "soon" },
    { "grpc-previous-rpc-attempts": "1" },
    { "accept-encoding": "gzip" },
  ],
];

/** A request: its headers, its body in pieces, and how it ends. */
interface RandomRequest {
  readonly headers: OutgoingHttpHeaders;
  readonly pieces: readonly Buffer[];
  readonly end: "data" | "trailers" | "headers" | "reset";
}

function randomRequest(random: Random): RandomRequest {
  const chance = (one: number) => random.below(one) === 0;
  const encoding = chance(4) ? random.pick(ENCODINGS) : undefined;
  return {
    headers: {
      ":method": chance(20) ? random.pick(["GET", "PUT", "OPTIONS"]) : "POST",
      ":path": chance(8) ? random.pick(PATHS) : DESCRIBE,
      "content-type": chance(8) ? random.pick(TYPES) : "application/grpc",
      te: "trailers",
      ...(chance(4) && { "grpc-timeout": random.pick(TIMEOUTS) }),
      ...(encoding !== undefined && { "grpc-encoding": encoding }),
      ...(chance(2) && random.pick(HEADERS)),
      ...(chance(4) && random.pick(HEADERS)),
    },
    pieces: randomFrames(random, MESSAGES, encoding),
    end: random.pick(["data", "data", "data", "data", "trailers", "headers", "reset"]),
  };
}

/** The answer to a request, without what every server words in its own way. */
interface Outcome {
  readonly http: unknown;
  readonly status: unknown;
  readonly body: string;
}

/** How the answer to a request may differ from that of the library's server. */
const DIFFERENCES: Readonly<
  Record<string, (request: RandomRequest, own: Outcome, library: Outcome) => boolean>
> = {
  "requests of gRPC are POST": ({ headers }, own) => headers[":method"] !== "POST" && own.http === 405,
  "an unknown encoding is refused even if no message is packed": ({ headers }, own) =>
    !["identity", "gzip"].includes(String(headers["grpc-encoding"] ?? "gzip")) && own.status === "12",
  "a malformed timeout is the client's mistake": ({ headers }, own) =>
    !/^ *\d{1,8}[HMSmun]$/.test(String(headers["grpc-timeout"] ?? "1S")) && own.status === "3",
  "a malformed message is the client's mistake": (_, own, library) =>
    own.status === "3" && library.status === "13",
  "a flag is 0, or 1 for a message in the announced encoding": ({ headers, pieces }, own) =>
    Number(Buffer.concat(pieces)[0]) > (headers["grpc-encoding"] === "gzip" ? 1 : 0) && own.status === "13",
  "of several messages, another one may be refused first": ({ pieces }, own, library) =>
    messagesIn(pieces).messages > 1 && own.status !== "0" && library.status !== "0",
  "a body does not end inside a message": ({ pieces }, own) =>
    messagesIn(pieces).isCut && own.status === "13",
};

function send(
  session: ClientHttp2Session,
  { headers, pieces, end }: RandomRequest,
): Promise<Outcome | undefined> {
  const { promise, resolve } = Promise.withResolvers<Outcome | undefined>();
  let [answer, trailers]: IncomingHttpHeaders[] = [{}, {}];
  const body: Buffer[] = [];
  const stream = session.request(headers, {
    endStream: end === "headers",
    waitForTrailers: end === "trailers",
  });
  stream.on("response", (received) => {
    answer = received;
  });
  stream.on("trailers", (received) => {
    trailers = received;
  });
  stream.on("data", (piece: Buffer) => body.push(piece));
  stream.on("wantTrailers", () => stream.sendTrailers({ "x-trailer": "1" }));
  stream.on("error", () => {});
  stream.on("close", () => {
    // Whether an answer comes before the reset is chance.
    if (end === "reset") return resolve(undefined);
    const status = trailers?.["grpc-status"] ?? answer?.["grpc-status"];
    resolve({ http: answer?.[":status"], status, body: Buffer.concat(body).toString("hex") });
  });
  if (end === "headers") return promise;
  for (const piece of pieces) stream.write(piece);
  if (end === "reset") setImmediate(() => stream.close(constants.NGHTTP2_CANCEL));
  else stream.end();
  return promise;
}

/** Describes a table, or fails. */
function described(id: readonly string[]) {
  if (id[0] === "gone") throw new LanceError("TableNotFound", "gone");
  if (id[0] === "broken") throw new Error("a secret");
  return create(DescribeTableResponseSchema, { table: id.join("/") });
}

/** Starts the library's server with the same method, and returns its address. */
async function startLibrary(): Promise<string> {
  const server = new Server({ "grpc.max_receive_message_length": MAX_MESSAGE_BYTES });
  const [path] = codecs(METHODS.describeTable);
  server.register<DescribeTableRequest, DescribeTableResponse>(
    path,
    (({ request }, callback) => {
      try {
        callback(null, described(request.id));
      } catch (error) {
        callback({ code: error instanceof LanceError ? error.entry.grpcCode : 13, details: "" });
      }
    }) as handleUnaryCall<DescribeTableRequest, DescribeTableResponse>,
    (message) => Buffer.from(toBinary(DescribeTableResponseSchema, message)),
    (bytes) => fromBinary(DescribeTableRequestSchema, bytes),
    "unary",
  );
  const port = await new Promise<number>((resolve) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (_, found) => resolve(found));
  });
  onTestFinished(() => server.forceShutdown());
  return `127.0.0.1:${port}`;
}

test("random requests have the answers of the library's server, and leave the connection well", async () => {
  const random = createRandom(seedOf("GRPC_SEED"));
  const library = await startLibrary();
  await using server = await startGrpc(
    fakeService({ unary: async (_, message) => described((message as never as { id: string[] }).id) }),
    { maxMessageBytes: MAX_MESSAGE_BYTES },
  );
  const good: RandomRequest = {
    headers: { ":method": "POST", ":path": DESCRIBE, "content-type": "application/grpc" },
    pieces: [Buffer.alloc(HEAD_BYTES)],
    end: "data",
  };
  for (let round = 0; round < ROUNDS; round++) {
    // A new connection, because node's server ends those on which a client resets a thousand calls.
    const sessions = [server.address, library].map((address) => connect(`http://${address}`));
    for (const session of sessions) session.on("error", () => {});
    const requests = Array.from({ length: CALLS }, () => randomRequest(random));
    const ask = (request: RandomRequest) => Promise.all(sessions.map((session) => send(session, request)));
    const outcomes = await Promise.all(requests.map(ask));
    const answers = await ask(good);
    for (const session of sessions) session.destroy();
    for (const [index, [own, other]] of outcomes.entries()) {
      const request = requests[index] as RandomRequest;
      const differs = (allows: (typeof DIFFERENCES)[string]) =>
        own !== undefined && other !== undefined && allows(request, own, other);
      if (Object.values(DIFFERENCES).some(differs)) continue;
      assert.deepEqual(own, other, inspect({ round, ...request }, { depth: 3 }));
    }
    assert.deepEqual(answers, Array(2).fill({ http: 200, status: "0", body: "00000000021200" }));
  }
});
