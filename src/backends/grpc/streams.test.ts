import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { describe, it } from "vitest";
import {
  createTable,
  failsWith,
  MIB,
  queryTable,
  useUpstream,
} from "../../../test/fixtures/upstreams/grpc.ts";
import { upstreamOf } from "../../../test/fixtures/upstreams/http2.ts";
import { paddedStream } from "../../../test/support/arrow.ts";
import { beginCall } from "../../../test/support/caller.ts";
import { steady } from "../../../test/support/steady.ts";
import { HttpBodySchema } from "../../gen/google/api/httpbody_pb.ts";
import { CreateTableRequestSchema, CreateTableResponseSchema } from "../../gen/lance/namespace/v1/data_pb.ts";
import { QueryTableResponseSchema } from "../../gen/lance/namespace/v1/query_pb.ts";
import { isLanceError, LanceError } from "../../namespace/errors.ts";
import type { LanceNamespace } from "../../namespace/lance-namespace.ts";

describe("uploads and downloads of the gRPC backend", () => {
  const world = useUpstream();

  it("reads no more of a body than the upstream takes, and releases what has gone", async () => {
    const go = Promise.withResolvers<void>();
    let received = 0;
    world.upstream = {
      createTable: async (request, data) => {
        await go.promise;
        for await (const piece of data) received += piece.length;
        return create(CreateTableResponseSchema, { version: 1n, location: request.data?.contentType ?? "" });
      },
    };
    let [taken, released] = [0, 0];
    async function* body() {
      for (; taken < 96 * MIB; taken += 3 * MIB) yield paddedStream(3 * MIB);
    }
    const call = beginCall(createTable, {
      releaseBody: (bytes) => {
        released += bytes;
      },
    });
    const request = create(CreateTableRequestSchema, { id: ["t"], data: { contentType: "a/b" } });
    const answer = (world.backend.operations.createTable as LanceNamespace["createTable"])(
      request,
      body(),
      call,
    );
    await steady(() => taken);
    assert.ok(taken < 64 * MIB, `${taken} bytes are taken ahead`);
    go.resolve();
    assert.equal((await answer).location, "a/b");
    assert.deepEqual([received, released], [96 * MIB, 96 * MIB]);
  });

  it("counts the bytes of a body until the upstream takes them", async (t) => {
    const { backend } = await upstreamOf(t, () => {}, {}, { settings: { initialWindowSize: 0 } });
    let [begun, released] = [0, 0];
    async function* body() {
      while (begun < 64) {
        begun += 1;
        yield new Uint8Array(MIB);
      }
    }
    const cancel = new AbortController();
    const call = beginCall(createTable, {
      signal: cancel.signal,
      releaseBody: (bytes) => {
        released += bytes;
      },
    });
    const request = create(CreateTableRequestSchema, { id: ["t"] });
    const answer = (backend.operations.createTable as LanceNamespace["createTable"])(request, body(), call);
    await steady(() => begun);
    // The library keeps as much to repeat the call.
    assert.ok(released <= MIB, `${released} bytes are released`);
    cancel.abort(new LanceError("Cancelled", "the client left"));
    await assert.rejects(answer, failsWith("Cancelled"));
  });

  it("fails an upload with what its body fails with, and cancels it at the upstream", async () => {
    const begun = Promise.withResolvers<void>();
    const outcome = Promise.withResolvers<unknown>();
    world.upstream = {
      createTable: async (_, data) => {
        try {
          for await (const _piece of data) begun.resolve();
          outcome.resolve("it was whole");
        } catch (error) {
          outcome.resolve(error);
        }
        return create(CreateTableResponseSchema);
      },
    };
    const broken = new LanceError("PayloadTooLarge", "that is too much");
    async function* body() {
      yield new Uint8Array(4 * MIB);
      await begun.promise;
      throw broken;
    }
    const call = beginCall(createTable);
    const request = create(CreateTableRequestSchema, { id: ["t"] });
    const answer = (world.backend.operations.createTable as LanceNamespace["createTable"])(
      request,
      body(),
      call,
    );
    await assert.rejects(answer, broken);
    assert.ok((await outcome.promise) instanceof Error);
  });

  it("answers an upload that the upstream refuses early", async () => {
    world.upstream = {
      createTable: async () => {
        throw new LanceError("TableAlreadyExists", "t exists");
      },
    };
    async function* endless() {
      for (;;) {
        yield new Uint8Array(MIB);
        await sleep(1);
      }
    }
    const request = create(CreateTableRequestSchema, { id: ["t"] });
    const answer = (world.backend.operations.createTable as LanceNamespace["createTable"])(
      request,
      endless(),
      beginCall(createTable),
    );
    await assert.rejects(answer, failsWith("TableAlreadyExists"));
  });

  it("asks for no more of an answer than is read, and cancels it when its reader leaves", async () => {
    let made = 0;
    const left = Promise.withResolvers<void>();
    world.upstream = {
      async *queryTable() {
        try {
          for (; made < 200; made += 1) {
            const data = create(HttpBodySchema, { contentType: "x", data: new Uint8Array(MIB) });
            yield create(QueryTableResponseSchema, { data });
          }
        } finally {
          left.resolve();
        }
      },
    };
    const request = create(queryTable.input, { id: ["t"] });
    const answer = (world.backend.operations.queryTable as LanceNamespace["queryTable"])(
      request,
      beginCall(queryTable),
    );
    let read = 0;
    for await (const { data } of answer) {
      read += data?.data.length ?? 0;
      await steady(() => made);
      // The window of a stream has 8 MiB.
      assert.ok(made < 16, `${made} pieces were made for a reader of one`);
      break;
    }
    assert.equal(read, MIB);
    await left.promise;
  });

  it("fails an answer that fails in the middle", async () => {
    world.upstream = {
      async *queryTable() {
        yield create(QueryTableResponseSchema, { data: { contentType: "x", data: new Uint8Array(10) } });
        throw new LanceError("InvalidTableState", "a file is gone");
      },
    };
    const request = create(queryTable.input, { id: ["t"] });
    const answer = (world.backend.operations.queryTable as LanceNamespace["queryTable"])(
      request,
      beginCall(queryTable),
    );
    let pieces = 0;
    const reading = (async () => {
      for await (const _ of answer) pieces += 1;
    })();
    await assert.rejects(reading, failsWith("InvalidTableState", /a file is gone/));
    assert.equal(pieces, 1);
  });

  it("leaves headers that clients do not get out of every message of an answer", async () => {
    const context = { "header.set-cookie": "s", "header.x-lance-a": "1" };
    world.upstream = {
      async *queryTable() {
        for (let piece = 0; piece < 2; piece++) yield create(QueryTableResponseSchema, { context });
      },
    };
    const request = create(queryTable.input, { id: ["t"] });
    const answer = (world.backend.operations.queryTable as LanceNamespace["queryTable"])(
      request,
      beginCall(queryTable),
    );
    const seen: object[] = [];
    for await (const message of answer) seen.push(message.context);
    assert.deepEqual(seen, [{ "header.x-lance-a": "1" }, { "header.x-lance-a": "1" }]);
  });

  it("cannot reach the upstream for a download that waits for its turn until the channel is closed", async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    world.upstream = {
      async *queryTable() {
        yield create(QueryTableResponseSchema, { data: { contentType: "x", data: new Uint8Array(10) } });
        await released;
      },
    };
    const backend = await world.open({ maxCalls: 1, resilience: { retries: 0 } });
    const download = () =>
      (backend.operations.queryTable as LanceNamespace["queryTable"])(
        create(queryTable.input, { id: ["t"] }),
        beginCall(queryTable),
      )[Symbol.asyncIterator]();
    const first = download();
    await first.next();
    const second = download().next();
    await new Promise(setImmediate);
    await backend.close();
    release();
    await first.next();
    await assert.rejects(
      second,
      (error: unknown) => isLanceError(error, "ServiceUnavailable") && error.fault === "unreached",
    );
  });
});
