import assert from "node:assert/strict";
import type { ServerHttp2Stream } from "node:http2";
import { gzipSync } from "node:zlib";
import { create, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { describeOn, failsWith, MIB, queryTable } from "../../../test/fixtures/upstreams/grpc.ts";
import { type Answer, answerWith, plain, upstreamOf } from "../../../test/fixtures/upstreams/http2.ts";
import { beginCall } from "../../../test/support/caller.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { DescribeTableResponseSchema } from "../../gen/lance/namespace/v1/table_pb.ts";
import { isLanceError, LanceError } from "../../namespace/errors.ts";
import { createAnswerBudget } from "../resilience/answer-budget.ts";

const { dropTable } = LanceNamespaceService.method;

/** A message of more than a mebibyte. */
const LARGE = toBinary(
  DescribeTableResponseSchema,
  create(DescribeTableResponseSchema, { table: "t".repeat(MIB) }),
);

/** Sends the beginning of an answer, and remembers how to end it. */
function begin(stream: ServerHttp2Stream): () => void {
  const head = Buffer.from([0, 0, 0, 0, 0]);
  head.writeUInt32BE(LARGE.length, 1);
  stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
  stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
  stream.write(Buffer.concat([head, LARGE.subarray(0, MIB / 2)]));
  return () => stream.end(LARGE.subarray(MIB / 2));
}

const isCrowded = (error: unknown) =>
  isLanceError(error, "ServiceUnavailable") && /in flight/.test(error.message);

describe("answers of a gRPC upstream that are collected", () => {
  it("fail beyond the memory of all of them, and give it back however they end", async (t) => {
    const answers = createAnswerBudget(MIB);
    const ends: (() => void)[] = [];
    const { backend } = await upstreamOf(t, (stream) => void ends.push(begin(stream)), { answers });
    const cancel = new AbortController();
    const first = describeOn(backend, { signal: cancel.signal });
    await expect.poll(() => answers.held).toBeGreaterThan(MIB / 4);
    const second = describeOn(backend);
    await expect.poll(() => answers.held).toBeGreaterThan((MIB * 3) / 4);
    await assert.rejects(describeOn(backend), isCrowded);
    cancel.abort(new LanceError("Cancelled", "the client left"));
    await assert.rejects(first, failsWith("Cancelled"));
    await expect.poll(() => answers.held).toBeLessThan((MIB * 3) / 4);
    ends[1]?.();
    assert.equal((await second).table?.length, MIB);
    await expect.poll(() => answers.held).toBe(0);
  });

  it("arrive while the memory is used up, if they are small", async (t) => {
    const answers = createAnswerBudget(0);
    const { backend } = await upstreamOf(t, answerWith([plain]), { answers });
    assert.equal((await describeOn(backend)).table, "t");
  });

  it("count as they are unpacked", async (t) => {
    const answers = createAnswerBudget(MIB / 2);
    const packed = answerWith([{ flag: 1, data: gzipSync(LARGE) }], "gzip");
    const { backend } = await upstreamOf(t, packed, { answers });
    await assert.rejects(describeOn(backend), isCrowded);
    await expect.poll(() => answers.held).toBe(0);
  });

  it("count what has arrived ahead of a reader that takes nothing, and the one with the most is cut off", async (t) => {
    const answers = createAnswerBudget(3 * MIB);
    const message = toBinary(
      queryTable.output,
      create(queryTable.output, { data: { data: new Uint8Array(MIB / 4) } }),
    );
    const ofMessages = (count: number) => answerWith(Array(count).fill({ flag: 0, data: message }));
    const streams: ServerHttp2Stream[] = [];
    const answer: Answer = (stream, headers) => {
      streams.push(stream);
      ofMessages(Number(headers["x-messages"]))(stream, headers);
    };
    const { backend } = await upstreamOf(t, answer, { answers, passHeaders: ["x-messages"] });
    const begin = async (messages: number) => {
      const call = beginCall(queryTable, { headers: { "x-messages": String(messages) } });
      const result = backend.operations.queryTable?.(create(queryTable.input, { id: ["t"] }), call);
      const iterator = (result as AsyncIterable<unknown>)[Symbol.asyncIterator]();
      await iterator.next();
      return iterator;
    };
    const restOf = async (iterator: AsyncIterator<unknown>) => {
      for (let next = await iterator.next(); !next.done; next = await iterator.next());
    };
    const small = await begin(8);
    await expect.poll(() => answers.held).toBeGreaterThan(MIB / 2);
    // More than its window, so that it cannot end by itself.
    const large = await begin(40);
    await expect.poll(() => streams[1]?.closed).toBe(true);
    await assert.rejects(restOf(large), isCrowded);
    await restOf(small);
    await expect.poll(() => answers.held).toBe(0);
  });

  it("leave the outcome of a change unknown if they find no memory", async (t) => {
    const answers = createAnswerBudget(MIB / 4);
    const { backend } = await upstreamOf(t, (stream) => void begin(stream), { answers });
    const drop = backend.operations.dropTable?.(create(dropTable.input, { id: ["t"] }), beginCall(dropTable));
    await assert.rejects(drop ?? Promise.resolve(), failsWith("OutcomeUnknown"));
  });
});
