import assert from "node:assert/strict";
import { constants, type IncomingHttpHeaders } from "node:http2";
import { join } from "node:path";
import { deflateSync, gzipSync } from "node:zlib";
import { create, toBinary } from "@bufbuild/protobuf";
import { describe, it } from "vitest";
import { describeOn, failsWith, queryTable } from "../../../test/fixtures/upstreams/grpc.ts";
import { type Answer, answerWith, plain, TABLE, upstreamOf } from "../../../test/fixtures/upstreams/http2.ts";
import { beginCall } from "../../../test/support/caller.ts";
import { temporaryDirectory } from "../../../test/support/directory.ts";
import { DescribeTableResponseSchema } from "../../gen/lance/namespace/v1/table_pb.ts";
import { isLanceError, type UpstreamFault } from "../../namespace/errors.ts";
import type { LanceNamespace } from "../../namespace/lance-namespace.ts";
import { timeoutHeader } from "./unary-call.ts";

const SIZE = 4_096;
const LARGE = toBinary(
  DescribeTableResponseSchema,
  create(DescribeTableResponseSchema, { table: "t".repeat(SIZE) }),
);

describe("unary calls of a gRPC upstream", () => {
  for (const [encoding, pack] of [
    ["gzip", gzipSync],
    ["deflate", deflateSync],
  ] as const) {
    it(`unpack an answer in ${encoding}`, async (t) => {
      const { backend } = await upstreamOf(t, answerWith([{ flag: 1, data: pack(TABLE) }], encoding));
      assert.equal((await describeOn(backend)).table, "t");
    });
  }

  const broken: readonly (readonly [string, Answer, UpstreamFault])[] = [
    [
      "is larger than allowed once it is unpacked",
      answerWith([{ flag: 1, data: gzipSync(LARGE) }], "gzip"),
      "oversized",
    ],
    ["is packed in no known encoding", answerWith([{ flag: 1, data: TABLE }]), "broken"],
    ["is not what its encoding says", answerWith([{ flag: 1, data: TABLE }], "gzip"), "broken"],
    ["has two messages", answerWith([plain, plain]), "broken"],
    ["has no message", answerWith([]), "broken"],
    ["cannot be read", answerWith([{ flag: 0, data: Uint8Array.of(255) }]), "broken"],
  ];
  for (const [name, answer, fault] of broken) {
    it(`fail at once if the answer ${name}`, async (t) => {
      const { backend } = await upstreamOf(t, answer, { maxMessageBytes: SIZE });
      await assert.rejects(
        describeOn(backend),
        (error) => isLanceError(error, "ServiceUnavailable") && error.fault === fault,
      );
    });
  }

  it("are too large if the upstream says so of the request, as downloads are", async (t) => {
    const { backend } = await upstreamOf(t, (stream) => {
      const refusal = { "grpc-status": "8", "grpc-message": "Received message larger than max (9 vs 8)" };
      stream.respond({ ":status": 200, "content-type": "application/grpc", ...refusal }, { endStream: true });
    });
    await assert.rejects(describeOn(backend), failsWith("PayloadTooLarge"));
    const rows = (backend.operations as LanceNamespace).queryTable(
      create(queryTable.input, { id: ["t"] }),
      beginCall(queryTable),
    );
    await assert.rejects(async () => {
      for await (const _ of rows);
    }, failsWith("PayloadTooLarge"));
  });

  it("carry their time left, and the name of the upstream", async (t) => {
    const seen: IncomingHttpHeaders[] = [];
    const answer: Answer = (stream, headers) => {
      seen.push(headers);
      answerWith([plain])(stream, headers);
    };
    const { backend, address } = await upstreamOf(t, answer);
    await describeOn(backend, { deadline: Date.now() + 60_000 });
    await describeOn(backend);
    const directory = await temporaryDirectory();
    t.onTestFinished(directory.remove);
    await describeOn(
      (await upstreamOf(t, answer, {}, { path: join(directory.path, "upstream.sock") })).backend,
    );
    const [, left] = /^(\d+)m$/.exec(String(seen[0]?.["grpc-timeout"])) ?? [];
    assert.ok(Number(left) > 0 && Number(left) <= 60_000, `${left} ms are left`);
    assert.equal(seen[1]?.["grpc-timeout"], undefined);
    assert.deepEqual(
      seen.map((headers) => headers[":authority"]),
      [address, address, "localhost"],
    );
  });

  it("go to the next connection if theirs ends before the upstream has looked at them", async (t) => {
    let calls = 0;
    const { backend } = await upstreamOf(t, (stream, headers) => {
      calls += 1;
      if (calls > 1) return answerWith([plain])(stream, headers);
      stream.session?.close();
      stream.close(constants.NGHTTP2_REFUSED_STREAM);
    });
    assert.equal((await describeOn(backend)).table, "t");
    assert.equal(calls, 2);
  });

  it("end at their deadline, and the upstream learns of it", async (t) => {
    const reset = Promise.withResolvers<number>();
    const { backend } = await upstreamOf(t, (stream) => {
      stream.on("close", () => reset.resolve(stream.rstCode));
    });
    const late = describeOn(backend, { deadline: Date.now() + 50 });
    await assert.rejects(late, failsWith("DeadlineExceeded"));
    assert.equal(await reset.promise, constants.NGHTTP2_CANCEL);
  });
});

it("writes a timeout in the finest unit that has room for it, and never a shorter one", () => {
  const day = 86_400_000;
  for (const [milliseconds, header] of [
    [0, "0m"],
    [0.2, "1m"],
    [1_500, "1500m"],
    [99_999_999, "99999999m"],
    [100_000_001, "100001S"],
    [2_000_000 * day, "48000000H"],
  ] as const) {
    assert.equal(timeoutHeader(milliseconds), header);
  }
});
