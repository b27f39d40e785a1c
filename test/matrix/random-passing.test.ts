import assert from "node:assert/strict";
import { once } from "node:events";
import {
  type ClientHttp2Session,
  connect,
  createServer as createHttp2Server,
  type ServerHttp2Stream,
} from "node:http2";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { inspect } from "node:util";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { pino } from "pino";
import { onTestFinished, test } from "vitest";
import { createGrpcBackend } from "../../src/backends/grpc/index.ts";
import { createRestBackend } from "../../src/backends/rest/index.ts";
import {
  DescribeTableRequestSchema,
  DescribeTableResponseSchema,
} from "../../src/gen/lance/namespace/v1/table_pb.ts";
import type { Backend } from "../../src/namespace/lance-namespace.ts";
import type { Interceptor } from "../../src/pipeline/call/interceptor.ts";
import * as grpcAnswers from "../fixtures/upstreams/random-grpc-answers.ts";
import * as restAnswers from "../fixtures/upstreams/random-rest-answers.ts";
import { type RawAnswer, rawCall } from "../fixtures/wires/grpc.ts";
import { createRandom } from "../support/random.ts";
import { seedOf } from "../support/seed.ts";
import { startServer } from "../support/server.ts";

const CALLS = Number(process.env["PASSING_CALLS"] ?? 120);
/** Calls at a time. */
const AT_ONCE = 20;
/** No call depends on others. */
const resilience = { retries: 0, circuitFailures: 0, silenceMs: 0 };
/** Prefix of a message. */
const HEAD_BYTES = 5;
const UNREAD = "a message that cannot be read";
const log = pino({ level: "silent" });

/** An interceptor in front of which no answer passes. */
const reads: Interceptor = (call, request, next) => next(call, request);

/** Starts a gateway that passes answers on, and another one that reads them. */
function startBoth(open: () => Promise<Backend>) {
  return Promise.all(
    [[], [reads]].map(async (interceptors) => {
      const gateway = await startServer(await open(), {}, { plugins: [{ interceptors }] });
      onTestFinished(() => gateway.close());
      return gateway.port;
    }),
  );
}

async function portOf(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

/** Draws answers, and compares what the gateways make of each. */
async function compare<A, O>(
  draw: (index: number) => A,
  ports: readonly number[],
  ask: (port: number, index: number) => Promise<O>,
  publish: (index: number, answer: A) => void,
  mayDiffer: (passed: O | undefined, read: O | undefined) => boolean = () => false,
) {
  for (let from = 0; from < CALLS; from += AT_ONCE) {
    const answers = Array.from({ length: AT_ONCE }, (_, i) => draw(from + i));
    for (const [i, answer] of answers.entries()) publish(from + i, answer);
    const outcomes = await Promise.all(
      answers.map((_, i) => Promise.all(ports.map((port) => ask(port, from + i)))),
    );
    for (const [i, [passed, read]] of outcomes.entries()) {
      const text = inspect({ call: from + i, ...answers[i] }, { depth: 4 });
      if (!mayDiffer(passed, read)) assert.deepEqual(passed, read, text);
    }
  }
}

const LINES = [
  ...["POST /v1/table/NAME/describe", "POST /v1/table/NAME/exists", "GET /v1/namespace/NAME/table/list"],
  ...["POST /v1/table/NAME/count_rows", "POST /v1/namespace/NAME/describe", "POST /v1/table/NAME/stats"],
];

test("random answers of a REST upstream become the same, passed on and read", async () => {
  const random = createRandom(seedOf("PASSING_SEED"));
  const answers = new Map<string, restAnswers.RandomAnswer>();
  const server = createServer((socket: Socket) => {
    let text = "";
    socket.on("error", () => {});
    socket.on("data", (piece) => {
      text += piece;
      const [head = "", body] = text.split("\r\n\r\n");
      if (body === undefined || body.length < Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0)) return;
      text = "";
      const name = /\/(c\d+)[/?]/.exec(head)?.[1] ?? "";
      const answer = answers.get(name);
      // Gateways ask whether it is there.
      if (answer === undefined) socket.end("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n");
      else void restAnswers.play(answer, socket);
    });
  });
  const uri = `http://127.0.0.1:${await portOf(server)}`;
  const { MAX_ANSWER_BYTES: maxAnswerBytes } = restAnswers;
  const ports = await startBoth(() => createRestBackend({ uri, log, resilience, maxAnswerBytes }));
  const lines = Array.from({ length: CALLS }, () => random.pick(LINES));

  async function ask(port: number, index: number) {
    const [method = "", path = ""] = (lines[index] as string).replace("NAME", `c${index}`).split(" ");
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      headers: {
        "x-request-id": `c${index}`,
        ...(method === "POST" && { "content-type": "application/json" }),
      },
      ...(method === "POST" && { body: "{}" }),
    });
    // Blanks of a text that passes on make it longer.
    const { date: _, "content-length": _length, ...headers } = Object.fromEntries(answer.headers);
    return { status: answer.status, headers, body: parsed(await answer.text()) };
  }
  await compare(
    (index) => restAnswers.randomAnswer(random, `c${index}`, true),
    ports,
    ask,
    (index, answer) => answers.set(`c${index}`, answer),
  );
});

/** Returns the value of a text, which may be JSON with blanks. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

test("random answers of a gRPC upstream become the same, passed on and read", async () => {
  const random = createRandom(seedOf("PASSING_SEED"));
  const answers = new Map<string, grpcAnswers.RandomAnswer>();
  const server = createHttp2Server(grpcAnswers.MANY_RESETS);
  server.on("stream", async (stream: ServerHttp2Stream) => {
    const body = Buffer.concat(await stream.toArray());
    const [name = ""] = fromBinary(DescribeTableRequestSchema, body.subarray(HEAD_BYTES)).id;
    const answer = answers.get(name);
    // Gateways ask whether it is there.
    if (answer === undefined) stream.respond({ ":status": 200, "grpc-status": "12" }, { endStream: true });
    else grpcAnswers.play(answer, stream);
  });
  const address = `127.0.0.1:${await portOf(server)}`;
  const { MAX_MESSAGE_BYTES: maxMessageBytes } = grpcAnswers;
  const ports = await startBoth(() =>
    createGrpcBackend({ addresses: [address], log, resilience, maxMessageBytes }),
  );
  const sessions = new Map<number, ClientHttp2Session>();
  for (const port of ports) {
    const session = connect(`http://127.0.0.1:${port}`);
    onTestFinished(() => session.destroy());
    sessions.set(port, session);
  }

  async function ask(port: number, index: number) {
    const message = toBinary(
      DescribeTableRequestSchema,
      create(DescribeTableRequestSchema, { id: [`c${index}`] }),
    );
    const body = Buffer.concat([Buffer.from([0, 0, 0, 0, message.length]), message]);
    const session = sessions.get(port) as ClientHttp2Session;
    return clientsView(await rawCall(session, body, { "x-request-id": `c${index}` }));
  }
  await compare(
    () => grpcAnswers.randomAnswer(random),
    ports,
    ask,
    (index, answer) => answers.set(`c${index}`, answer),
    refusesMore,
  );
});

/** Returns what a client sees. */
function clientsView({ headers: { date: _, ...headers }, trailers, body }: RawAnswer) {
  return { headers, trailers, message: body.length === 0 ? undefined : messageIn(body.subarray(HEAD_BYTES)) };
}

function messageIn(bytes: Uint8Array) {
  try {
    return fromBinary(DescribeTableResponseSchema, bytes);
  } catch {
    return UNREAD;
  }
}

type View = ReturnType<typeof clientsView>;

/**
 * The values of a message are the client's to read (docs/adr/0060): a gateway that reads them refuses those that it cannot read, even if
 * the status behind the message is another failure.
 */
function refusesMore(passed: View | undefined, read: View | undefined): boolean {
  const refuses = read?.headers["grpc-status"] === "14";
  return refuses && (passed?.message === UNREAD || passed?.headers["grpc-status"] !== undefined);
}
