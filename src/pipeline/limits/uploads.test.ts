import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { describe, it } from "vitest";
import { beginCall } from "../../../test/support/caller.ts";
import { LanceDbService } from "../../gen/lance/gateway/v1/lancedb_pb.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import type { Principal } from "../../namespace/call/principal.ts";
import { isLanceError } from "../../namespace/errors.ts";
import { createByteBudget } from "../../namespace/memory/byte-budget.ts";
import { openCells } from "../../runtime/threads/keyed-cells.ts";
import type { OperationRequest } from "../call/interceptor.ts";
import { createQuota, QUOTA_SHAPE } from "./quotas.ts";
import { admitBody, admitUploads } from "./uploads.ts";

async function* chunks(...sizes: readonly number[]) {
  for (const size of sizes) yield new Uint8Array(size);
}

async function drain(data: AsyncIterable<Uint8Array>): Promise<number> {
  let bytes = 0;
  for await (const chunk of data) bytes += chunk.byteLength;
  return bytes;
}

describe("admitBody", () => {
  const maxUploadBytes = 10;
  const call = beginCall(LanceNamespaceService.method.insertIntoTable);

  it("passes a body of exactly the limit and refuses one more byte", async () => {
    const hold = createByteBudget().open();
    assert.equal(await drain(admitBody(chunks(4, 6), hold, maxUploadBytes, call)), 10);
    await assert.rejects(drain(admitBody(chunks(4, 7), hold, maxUploadBytes, call)), (error) =>
      isLanceError(error, "PayloadTooLarge"),
    );
  });

  it("takes the bytes of a chunk before it passes the chunk on", async () => {
    const budget = createByteBudget(6);
    const hold = budget.open();
    const body = admitBody(chunks(4, 4), hold, maxUploadBytes, call);
    await body.next();
    assert.equal(budget.held, 4);
    const other = budget.open();
    other.take(1);
    const small = admitBody(chunks(2), budget.open(), maxUploadBytes, call);
    await assert.rejects(small.next(), (error) => isLanceError(error, "Throttling"));
    await assert.rejects(body.next(), (error) => isLanceError(error, "PayloadTooLarge"));
    hold.release();
    other.release();
    assert.equal(budget.held, 0);
  });
});

describe("admitUploads", () => {
  const { insertIntoTable } = LanceNamespaceService.method;
  const backend = { name: "fake", operations: {}, ready: async () => true, close: async () => {} };
  const databases = new Map([[undefined, { backend, limits: { maxUploadBytes: 100 } }]]);
  const isThrottled = (error: unknown) =>
    isLanceError(error, "Throttling") && error.headers["retry-after"] === "1";

  it("counts what the completion of a multipart write reads until its call ends", async () => {
    const { completeMultipartWrite: method } = LanceDbService.method;
    const budget = createByteBudget(10);
    const call = beginCall(method);
    const request = { kind: "unary", operation: "completeMultipartWrite", message: create(method.input) };
    await admitUploads(databases, budget)(call, request as OperationRequest, async () => {
      call.holdBody(8);
      assert.equal(budget.held, 8);
      const other = budget.open();
      other.take(1);
      assert.throws(() => call.holdBody(2), isThrottled);
      other.release();
      return create(method.output) as never;
    });
    assert.equal(budget.held, 0);
  });

  it("bounds the bytes that a caller's bodies hold until their calls end", async () => {
    const budget = createByteBudget();
    const step = admitUploads(databases, budget, createQuota(10, openCells(QUOTA_SHAPE)));
    const end = Promise.withResolvers<void>();
    const upload = (name: string, ...sizes: number[]) => {
      const facts = { credentialId: name, role: "owner", groups: [], claims: {} } as const;
      const principal: Principal = { by: "api-key", name, ...facts };
      const call = beginCall(insertIntoTable, { principal, hasKnownEnd: true });
      const message = create(insertIntoTable.input);
      const request = { kind: "upload", operation: "insertIntoTable", message, data: chunks(...sizes) };
      const read = Promise.withResolvers<void>();
      const answer = step(call, request as OperationRequest, async (_call, given) => {
        await drain((given as { data: AsyncIterable<Uint8Array> }).data);
        read.resolve();
        await end.promise;
        return create(insertIntoTable.output) as never;
      });
      return { answer: Promise.resolve(answer), read: read.promise };
    };
    const first = upload("ann", 4, 4);
    await first.read;
    await assert.rejects(upload("ann", 2, 1).answer, isThrottled);
    await assert.rejects(upload("ann", 11).answer, (error) => isLanceError(error, "PayloadTooLarge"));
    assert.equal(budget.held, 8);
    const other = upload("bob", 10);
    await other.read;
    end.resolve();
    await Promise.all([first.answer, other.answer]);
    assert.equal(budget.held, 0);
    await upload("ann", 10).answer;
  });
});
