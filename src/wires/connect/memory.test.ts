import assert from "node:assert/strict";
import { gzipSync } from "node:zlib";
import { create, toBinary } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { startConnect } from "../../../test/fixtures/wires/connect.ts";
import { fakeService, pausedService } from "../../../test/fixtures/wires/grpc.ts";
import { QueryTableResponseSchema } from "../../gen/lance/namespace/v1/query_pb.ts";
import { DescribeTableRequestSchema } from "../../gen/lance/namespace/v1/table_pb.ts";
import { createByteBudget } from "../../namespace/memory/byte-budget.ts";
import { encodeFrame } from "../grpc/frame.ts";
import { FREE_BYTES } from "../limits.ts";

const SERVICE = "/lance.namespace.v1.LanceNamespaceService";
const FILLER = { filler: "x".repeat(80_000) };

test("an unpacked message counts for the memory of requests until its call ends, and is unpacked no further than there is room", async () => {
  const message = toBinary(
    DescribeTableRequestSchema,
    create(DescribeTableRequestSchema, { context: FILLER }),
  );
  const requests: RequestInit[] = [
    {
      body: gzipSync(JSON.stringify({ context: FILLER })),
      headers: { "content-type": "application/json", "content-encoding": "gzip" },
    },
    {
      body: encodeFrame(gzipSync(message), true),
      headers: { "content-type": "application/grpc-web+proto", "grpc-encoding": "gzip" },
    },
  ];
  for (const request of requests) {
    const budget = createByteBudget(100_000);
    const { service, begun, answer } = pausedService();
    await using server = await startConnect(service, undefined, { budget });
    const call = async () =>
      (await fetch(`${server.http1}${SERVICE}/DescribeTable`, { method: "POST", ...request })).text();
    const running = call();
    await begun;
    assert.ok(budget.held > 80_000 - FREE_BYTES, `${budget.held}`);
    const refusal = decodeURIComponent(await call());
    assert.match(refusal, /memory limit exceeded/);
    answer();
    assert.match(await running, /only one/);
    assert.equal(budget.held, 0);
  }
});

test("the request of a download counts for the memory of requests until the download ends", async () => {
  const budget = createByteBudget();
  const service = fakeService({
    async *download() {
      for (;;) yield create(QueryTableResponseSchema, { data: { data: Buffer.alloc(100_000) } });
    },
  });
  await using server = await startConnect(service, undefined, { budget });
  const { body } = await fetch(`${server.http1}${SERVICE}/QueryTable`, {
    method: "POST",
    headers: { "content-type": "application/connect+json" },
    body: encodeFrame(Buffer.from(JSON.stringify({ context: FILLER })), false),
  });
  const reader = (body as ReadableStream<Uint8Array>).getReader();
  await reader.read();
  assert.ok(budget.held > 80_000 - FREE_BYTES, `${budget.held}`);
  await reader.cancel();
  await expect.poll(() => budget.held).toBe(0);
});
