import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { describe, it } from "vitest";
import { beginCall } from "../../../test/support/caller.ts";
import { HttpBodySchema } from "../../gen/google/api/httpbody_pb.ts";
import { QueryTableResponseSchema } from "../../gen/lance/namespace/v1/query_pb.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import type { Call } from "../../namespace/call/call.ts";
import { LanceError } from "../../namespace/errors.ts";
import { compose, type Next } from "../call/interceptor.ts";
import { serviceOf } from "../create-service.ts";
import { type Outcome, observe } from "./observe.ts";

const { describeTable, insertIntoTable, queryTable } = LanceNamespaceService.method;

const piece = (size: number) =>
  create(QueryTableResponseSchema, { data: create(HttpBodySchema, { data: new Uint8Array(size) }) });

/** Returns a service whose calls end as their requests' identifiers say, and a record of the reported ends. */
function measured() {
  const told: unknown[] = [];
  let running = 0;
  const end = (request: unknown) => {
    if ((request as { identifier: string }).identifier === "fails")
      throw new LanceError("TableNotFound", "no");
    if ((request as { identifier: string }).identifier === "breaks") throw new TypeError("a mistake");
  };
  const last: Next = async ({ method }, request) => {
    if (request.kind === "download") return pieces(() => end(request.message));
    if (request.kind === "unary") end(request.message);
    else for await (const _ of request.data) end(request.message);
    return create(method.output) as never;
  };
  async function* pieces(between: () => void) {
    yield piece(3);
    between();
    yield piece(4);
  }
  const metrics = {
    began() {
      running += 1;
    },
    ended({ method }: Call, outcome: Outcome, seconds: number, bytes: number) {
      running -= 1;
      assert.ok(seconds >= 0);
      told.push([method.name, outcome, bytes]);
    },
  };
  const result = serviceOf(compose([observe(metrics)], last));
  return { service: result, told, running: () => running };
}

describe("the account of calls", () => {
  it("tells how calls end, the unforeseen ways included", async () => {
    const { service, told, running } = measured();
    const ask = (identifier: string) =>
      service.unary(describeTable, create(describeTable.input, { identifier }), beginCall(describeTable));
    const asked = ask("t");
    assert.equal(running(), 1);
    await asked;
    await assert.rejects(ask("fails"), LanceError);
    await assert.rejects(ask("breaks"), LanceError);
    assert.deepEqual(told, [
      ["DescribeTable", "OK", 0],
      ["DescribeTable", "TableNotFound", 0],
      ["DescribeTable", "Internal", 0],
    ]);
    assert.equal(running(), 0);
  });

  it("counts the bytes that were read of an upload", async () => {
    const { service, told } = measured();
    async function* body() {
      yield new Uint8Array(5);
      yield new Uint8Array(6);
    }
    for (const identifier of ["t", "fails"]) {
      const request = create(insertIntoTable.input, { identifier });
      await service.upload(insertIntoTable, request, body(), beginCall(insertIntoTable)).catch(() => {});
    }
    assert.deepEqual(told, [
      ["InsertIntoTable", "OK", 11],
      ["InsertIntoTable", "TableNotFound", 5],
    ]);
  });

  it("reports an answer when it was read, broke off, or was left by its reader", async () => {
    const { service, told, running } = measured();
    const read = (identifier: string) =>
      service.download(queryTable, create(queryTable.input, { identifier }), beginCall(queryTable));
    for await (const _ of read("t"));
    await assert.rejects(async () => {
      for await (const _ of read("fails"));
    });
    for await (const _ of read("t")) break;
    assert.deepEqual(told, [
      ["QueryTable", "OK", 7],
      ["QueryTable", "TableNotFound", 3],
      ["QueryTable", "Cancelled", 3],
    ]);
    assert.equal(running(), 0);
  });
});
