import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { describe, it } from "vitest";
import { ann } from "../../../test/fixtures/auth/principal.ts";
import {
  answering,
  createTable,
  describeOn,
  describeTable,
  failsWith,
  useUpstream,
} from "../../../test/fixtures/upstreams/grpc.ts";
import { beginCall } from "../../../test/support/caller.ts";
import { CreateTableRequestSchema } from "../../gen/lance/namespace/v1/data_pb.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import {
  type DescribeTableRequest,
  DescribeTableRequestSchema,
} from "../../gen/lance/namespace/v1/table_pb.ts";
import { isLanceError, LanceError } from "../../namespace/errors.ts";
import type { LanceNamespace } from "../../namespace/lance-namespace.ts";

describe("the gRPC backend", () => {
  const world = useUpstream();

  it("has every operation and no extension", () => {
    assert.deepEqual(
      Object.keys(world.backend.operations).sort(),
      Object.keys(LanceNamespaceService.method).sort(),
    );
    assert.equal(world.backend.extensions, undefined);
  });

  it("carries the request's id, the trace and the headers of the list, and no entry of the context", async () => {
    world.upstream = { describeTable: answering };
    const headers = Object.assign(Object.create(null), {
      traceparent: "00-1-2-01",
      "x-lancedb-database": "d",
      "x-secret": "not passed",
      "grpc-timeout": "1S",
    });
    const fixed = await world.open({ headers: { "x-tenant": "blue" } });
    await describeOn(fixed, { requestId: "request-7", headers }, { "header.x-mine": "1" });
    await fixed.close();
    assert.equal(world.seen?.requestId, "request-7");
    const { traceparent, "x-lancedb-database": database, "x-tenant": tenant } = world.seen.headers;
    assert.deepEqual([traceparent, database, tenant], ["00-1-2-01", "d", "blue"]);
    assert.equal(world.seen.headers["x-mine"], undefined);
    assert.equal(world.seen.headers["x-secret"], undefined);
  });

  it("passes fields that it does not know only where nothing decides about callers", async () => {
    let seen: DescribeTableRequest["$unknown"];
    world.upstream = {
      async describeTable(request) {
        seen = request.$unknown;
        return answering();
      },
    };
    const describe = world.backend.operations.describeTable as LanceNamespace["describeTable"];
    const request = create(DescribeTableRequestSchema, { id: ["t"] });
    request.$unknown = [{ no: 1000, wireType: 0, data: Uint8Array.of(5) }];
    await describe(request, beginCall(describeTable));
    assert.deepEqual(
      seen?.map(({ no }) => no),
      [1000],
    );
    await describe(request, beginCall(describeTable, { principal: ann }));
    assert.equal(seen, undefined);
  });

  it("sends the client's credentials, or its own instead", async () => {
    world.upstream = { describeTable: answering };
    const identity = { apiKey: "key", authToken: "token" };
    await describeOn(world.backend, { identity });
    assert.deepEqual(world.seen?.identity, identity);
    const service = await world.open({ identity: { kind: "service", apiKey: "service" } });
    await describeOn(service, { identity }, { "header.authorization": "Bearer mine" });
    await service.close();
    assert.deepEqual(world.seen?.identity, { apiKey: "service", authToken: undefined });
  });

  it("takes a refusal of its own credentials for the upstream's fault, and of the client's for the client's", async () => {
    const refuse = async () => {
      throw new LanceError("Unauthenticated", "who is that?");
    };
    world.upstream = { describeTable: refuse, createTable: refuse };
    const service = await world.open({ identity: { kind: "service", apiKey: "service" } });
    for (const [on, name] of [
      [service, "ServiceUnavailable"],
      [world.backend, "Unauthenticated"],
    ] as const) {
      await assert.rejects(describeOn(on), failsWith(name));
      const upload = on.operations.createTable as LanceNamespace["createTable"];
      const body = Readable.from([Buffer.alloc(8)]);
      await assert.rejects(
        upload(create(CreateTableRequestSchema, { id: ["t"] }), body, beginCall(createTable)),
        failsWith(name),
      );
    }
    await service.close();
  });

  it("keeps an upstream's error: its row, texts, advice and request id", async () => {
    world.upstream = {
      describeTable: async () => {
        throw new LanceError("TableVersionNotFound", "no version 7 of é", {
          detail: "longer",
          headers: { "retry-after": "3" },
        });
      },
    };
    const error = await describeOn(world.backend, { requestId: "mine" }).catch((thrown: unknown) => thrown);
    assert.ok(isLanceError(error, "TableVersionNotFound"));
    const { message, detail, instance, headers } = error;
    assert.deepEqual([message, detail, instance], ["no version 7 of é", "longer", "mine"]);
    assert.deepEqual(headers, { "retry-after": "3" });
  });

  it("tells rows that borrow a code by their type", async () => {
    world.upstream = {
      describeTable: async () => {
        throw new LanceError("PayloadTooLarge", "too large");
      },
    };
    await assert.rejects(describeOn(world.backend), failsWith("PayloadTooLarge"));
  });

  it("carries the deadline on, and says that it has passed", async () => {
    world.upstream = {
      describeTable: async (_, call) => {
        await sleep(5_000, undefined, { signal: call.signal });
        return answering();
      },
    };
    await assert.rejects(
      describeOn(world.backend, { deadline: Date.now() + 100 }),
      failsWith("DeadlineExceeded"),
    );
    const left = (world.seen?.deadline ?? 0) - Date.now();
    assert.ok(left < 1_000, `the upstream's deadline is ${left} ms away`);
    const bounded = await world.open({ timeoutMs: 50 });
    await assert.rejects(describeOn(bounded), failsWith("DeadlineExceeded", /upstream/));
    await bounded.close();
  });

  it("cancels the upstream's call with its own", async () => {
    const cancelled = Promise.withResolvers<void>();
    const arrived = Promise.withResolvers<void>();
    world.upstream = {
      describeTable: (_, call) => {
        call.signal.addEventListener("abort", () => cancelled.resolve());
        arrived.resolve();
        return new Promise(() => {});
      },
    };
    const controller = new AbortController();
    const answer = describeOn(world.backend, { signal: controller.signal });
    const reason = new LanceError("Cancelled", "the client disconnected");
    await arrived.promise;
    controller.abort(reason);
    await assert.rejects(answer, reason);
    await cancelled.promise;
  });
});
