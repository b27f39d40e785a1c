import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import { inspect } from "node:util";
import { create, type Message, toBinary } from "@bufbuild/protobuf";
import { type Client, Metadata } from "@grpc/grpc-js";
import { onTestFinished, test } from "vitest";
import { describeTable } from "../../../test/fixtures/upstreams/grpc.ts";
import {
  MANY_RESETS,
  MAX_MESSAGE_BYTES,
  play,
  type RandomAnswer,
  randomAnswer,
} from "../../../test/fixtures/upstreams/random-grpc-answers.ts";
import { beginCall } from "../../../test/support/caller.ts";
import { createRandom } from "../../../test/support/random.ts";
import { messagesIn } from "../../../test/support/random-frames.ts";
import { seedOf } from "../../../test/support/seed.ts";
import {
  DescribeTableRequestSchema,
  DescribeTableResponseSchema,
} from "../../gen/lance/namespace/v1/table_pb.ts";
import type { LanceError } from "../../namespace/errors.ts";
import { LateSignal } from "../../runtime/late-signal.ts";
import { createAnswerBudget } from "../resilience/answer-budget.ts";
import { answerOf, type PendingAnswer, type Running } from "./answer.ts";
import { type Channel, createChannel, definitionOf } from "./channel/channels.ts";

const ROUNDS = Number(process.env["ANSWER_ROUNDS"] ?? 20);
/** Calls at a time in each way, on one connection. */
const CALLS = 20;
const GOOD: RandomAnswer = {
  headers: { ":status": 200, "content-type": "application/grpc" },
  pieces: [Buffer.from([0, 0, 0, 0, 3, 0x12, 1, 0x74])],
  trailers: { "grpc-status": "0" },
  informs: false,
};

const { path, requestSerialize: write, responseDeserialize: read } = definitionOf(describeTable);
const request: Message = create(DescribeTableRequestSchema, { id: ["t"] });

/** Starts an upstream that gives each call the answer whose number it names. */
async function startUpstream() {
  const state = {
    answers: [] as readonly RandomAnswer[],
    /** The calls, each by its way and its number. */
    seen: [] as string[],
  };
  const server = createServer(MANY_RESETS);
  server.on("stream", (stream: ServerHttp2Stream, headers) => {
    const asked = String(headers["x-answer"]);
    state.seen.push(asked);
    stream.on("error", () => {});
    stream.on("end", () => play(state.answers[Number.parseInt(asked, 10)] as RandomAnswer, stream)).resume();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return { address: `127.0.0.1:${(server.address() as AddressInfo).port}`, state };
}

type Begin = (channel: Channel, metadata: Metadata, answer: PendingAnswer) => Running;

/** Starts calls in both ways: on a connection, and through the library's client. */
const WAYS: Readonly<Record<string, Begin>> = {
  direct: (channel, metadata, answer) =>
    channel.unary({ path, request, metadata, deadline: undefined, write, read }, answer),
  library: (channel, metadata, answer) =>
    (channel.connected() as Client)
      .makeUnaryRequest(path, write, read, request, metadata, (error, message) =>
        error === null ? answer.done(message as Message) : answer.fail(error),
      )
      .on("metadata", () => {
        answer.begun = true;
      }),
};

/** Returns what becomes of a call for the answer with a number. */
function outcomeOf(way: string, channel: Channel, index: number) {
  const metadata = new Metadata();
  metadata.set("x-answer", `${index} ${way}`);
  const pending = { call: beginCall(describeTable), signal: new LateSignal(), onEnd: () => {} };
  return answerOf(pending, (answer) => (WAYS[way] as Begin)(channel, metadata, answer)).then(
    (answer) => ({
      answer: Buffer.from(toBinary(DescribeTableResponseSchema, answer as never)).toString("hex"),
    }),
    ({ kind, message, fault, headers, detail }: LanceError) => ({ kind, message, fault, headers, detail }),
  );
}

test("random answers are read as the library's client reads them, and leave the connection well", async () => {
  const random = createRandom(seedOf("ANSWER_SEED"));
  const { address, state } = await startUpstream();
  const limits = { places: 2 * CALLS, maxWaiting: 0 };
  const options = {
    connectMs: 5_000,
    keepAliveMs: 60_000,
    maxMessageBytes: MAX_MESSAGE_BYTES,
    limits,
    answers: createAnswerBudget(),
  };
  const [own, other] = [createChannel(address, options), createChannel(address, options)];
  onTestFinished(() => {
    own.close();
    other.close();
  });
  for (let round = 0; round < ROUNDS; round++) {
    await Promise.all([own.connected(), other.connected()]);
    const answers = Array.from({ length: CALLS }, () => randomAnswer(random));
    Object.assign(state, { answers: [...answers, GOOD], seen: [] });
    const outcomes = await Promise.all(
      answers.map((answer, index) => {
        const library = hasMore(answer) ? undefined : outcomeOf("library", other, index);
        return Promise.all([outcomeOf("direct", own, index), library]);
      }),
    );
    const { seen } = state;
    const good = await Promise.all([outcomeOf("direct", own, CALLS), outcomeOf("library", other, CALLS)]);
    for (const [index, [direct, library]] of outcomes.entries()) {
      const answer = answers[index] as RandomAnswer;
      const text = inspect({ round, direct, ...answer }, { depth: 3 });
      if (library === undefined) {
        assert.ok("kind" in direct || messagesIn(answer.pieces ?? []).messages === 1, text);
        continue;
      }
      const timesOf = (way: string) => seen.filter((asked) => asked === `${index} ${way}`).length;
      assert.equal(timesOf("direct"), timesOf("library"), text);
      const bothFail = "kind" in direct && "kind" in library;
      if (!bothFail || !isPacked(answer)) assert.deepEqual(direct, library, text);
    }
    assert.deepEqual(good, Array(2).fill({ answer: "120174" }));
  }
});

/** Whether an answer has more than one message, at which the library's client waits for ever (docs/adr/0100). */
function hasMore({ pieces = [] }: RandomAnswer): boolean {
  const { messages, isCut } = messagesIn(pieces);
  return messages > 1 || (messages === 1 && isCut);
}

/** Whether the message is packed: the errors of those that cannot be unpacked have names of their own (docs/adr/0100). */
function isPacked({ pieces = [] }: RandomAnswer): boolean {
  return Buffer.concat(pieces)[0] === 1;
}
