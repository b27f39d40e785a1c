import assert from "node:assert/strict";
import { type ClientHttp2Session, connect, constants, type IncomingHttpHeaders } from "node:http2";
import { inspect } from "node:util";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { type handleUnaryCall, Server, ServerCredentials } from "@grpc/grpc-js";
import { onTestFinished, test } from "vitest";
import { codecs, fakeService, METHODS, startGrpc } from "../../../test/fixtures/wires/grpc.ts";
import {
  DESCRIBE,
  DIFFERENCES,
  MAX_MESSAGE_BYTES,
  type Outcome,
  type RandomRequest,
  randomRequest,
} from "../../../test/fixtures/wires/random-request.ts";
import { createRandom } from "../../../test/support/random.ts";
import { seedOf } from "../../../test/support/seed.ts";
import {
  type DescribeTableRequest,
  DescribeTableRequestSchema,
  type DescribeTableResponse,
  DescribeTableResponseSchema,
} from "../../gen/lance/namespace/v1/table_pb.ts";
import { LanceError } from "../../namespace/errors.ts";

const ROUNDS = Number(process.env["GRPC_ROUNDS"] ?? 15);
/** Requests at a time, on one connection. */
const CALLS = 20;
/** Prefix of a message. */
const HEAD_BYTES = 5;

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
