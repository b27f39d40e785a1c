import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { create, type MessageShape } from "@bufbuild/protobuf";
import { connectivityState, Metadata } from "@grpc/grpc-js";
import { type TestContext, test } from "vitest";
import { describeTable, failsWith, MIB } from "../../../test/fixtures/upstreams/grpc.ts";
import { beginCall } from "../../../test/support/caller.ts";
import { fakeBackend, startServer } from "../../../test/support/server.ts";
import {
  DescribeTableRequestSchema,
  DescribeTableResponseSchema,
} from "../../gen/lance/namespace/v1/table_pb.ts";
import { createAnswerBudget } from "../resilience/answer-budget.ts";
import { answerOf } from "./answer.ts";
import { createChannel, definitionOf } from "./channel/channels.ts";

/** The shortest time that the library takes. */
const IDLE_MS = 1_000;

/** Opens a channel to a server that answers with the name of the table, and for `held` when it is released. */
async function openChannel(t: TestContext) {
  const [arrived, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const server = await startServer(
    fakeBackend({
      async describeTable(_, { id: [table = ""] }) {
        arrived.resolve();
        if (table === "held") await released.promise;
        return create(DescribeTableResponseSchema, { table });
      },
    }),
  );
  t.onTestFinished(() => server.close());
  const limits = { places: 1, maxWaiting: 1 };
  const times = { connectMs: 5_000, keepAliveMs: 60_000, idleMs: IDLE_MS };
  const channel = createChannel(`127.0.0.1:${server.port}`, {
    ...times,
    maxMessageBytes: MIB,
    limits,
    answers: createAnswerBudget(),
  });
  t.onTestFinished(() => channel.close());
  const { path, requestSerialize: write, responseDeserialize: read } = definitionOf(describeTable);
  async function describe(table: string): Promise<string | undefined> {
    const call = beginCall(describeTable);
    const request = create(DescribeTableRequestSchema, { id: [table] });
    const unary = { path, request, metadata: new Metadata(), deadline: undefined, write, read };
    const pending = { call, signal: call.signal, onEnd() {} };
    const answer = await answerOf(pending, (waiting) => channel.unary(unary, waiting));
    return (answer as MessageShape<typeof DescribeTableResponseSchema>).table;
  }
  const library = (await channel.connected()).getChannel();
  return { channel, describe, library, arrived: arrived.promise, release: released.resolve };
}

test("a call that waited for its turn until the channel was idle connects again, and a call in flight goes on", async (t) => {
  const { describe, library, arrived, release } = await openChannel(t);
  const held = describe("held");
  await arrived;
  while (library.getConnectivityState(false) !== connectivityState.IDLE) await sleep(20);
  assert.equal(await describe("late"), "late");
  release();
  assert.equal(await held, "held");
});

test("a call that waited for its turn until the channel was closed does not connect again", async (t) => {
  const { channel, describe, library } = await openChannel(t);
  channel.close();
  await assert.rejects(describe("late"), failsWith("ServiceUnavailable"));
  assert.equal(library.getConnectivityState(false), connectivityState.SHUTDOWN);
});
