import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { pino } from "pino";
import { afterAll, beforeAll, describe, it } from "vitest";
import { paddedStream } from "../../../test/support/arrow.ts";
import { beginCall } from "../../../test/support/caller.ts";
import { fakeBackend, startServer, type TestServer } from "../../../test/support/server.ts";
import { steady } from "../../../test/support/steady.ts";
import { HttpBodySchema } from "../../gen/google/api/httpbody_pb.ts";
import { CreateTableRequestSchema, CreateTableResponseSchema } from "../../gen/lance/namespace/v1/data_pb.ts";
import { QueryTableResponseSchema } from "../../gen/lance/namespace/v1/query_pb.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import {
  DescribeTableRequestSchema,
  DescribeTableResponseSchema,
} from "../../gen/lance/namespace/v1/table_pb.ts";
import type { Call } from "../../namespace/call.ts";
import { type ErrorName, isLanceError, LanceError } from "../../namespace/errors.ts";
import type { Backend, LanceNamespace } from "../../namespace/lance-namespace.ts";
import { createGrpcBackend, type GrpcBackendOptions } from "./index.ts";

const log = pino({ level: "silent" });
const { describeTable, createTable, queryTable } = LanceNamespaceService.method;
const MIB = 1024 * 1024;

describe("the gRPC backend", () => {
  /** Behaviour of the upstream, and what it received. */
  let upstream: Partial<LanceNamespace> = {};
  let seen: Call | undefined;
  let server: TestServer;
  let backend: Backend;

  beforeAll(async () => {
    server = await startServer(
      fakeBackend({
        describeTable: (request, call) => {
          seen = call;
          return (upstream.describeTable as LanceNamespace["describeTable"])(request, call);
        },
        createTable: (request, data, call) =>
          (upstream.createTable as LanceNamespace["createTable"])(request, data, call),
        queryTable: (request, call) => (upstream.queryTable as LanceNamespace["queryTable"])(request, call),
      }),
    );
    backend = await open();
  });
  afterAll(async () => {
    await backend.close();
    await server.close();
  });

  function open(options: Partial<GrpcBackendOptions> = {}): Promise<Backend> {
    return createGrpcBackend({ addresses: [`127.0.0.1:${server.port}`], log, ...options });
  }

  async function describeOn(
    on: Backend,
    overrides: Partial<Call> = {},
    context: Record<string, string> = {},
  ) {
    const call = beginCall(describeTable, overrides);
    const request = create(DescribeTableRequestSchema, { id: ["t"], context });
    for (const key in context) call.headers[key.replace("header.", "")] = context[key] as string;
    return await (on.operations.describeTable as LanceNamespace["describeTable"])(request, call);
  }

  const answering = async () => create(DescribeTableResponseSchema, { table: "t" });
  const failsWith =
    (name: ErrorName, text = /./) =>
    (error: unknown) =>
      isLanceError(error, name) && text.test(error.message);

  it("has every operation and no extension", () => {
    assert.deepEqual(
      Object.keys(backend.operations).sort(),
      Object.keys(LanceNamespaceService.method).sort(),
    );
    assert.equal(backend.extensions, undefined);
  });

  it("carries the request's id, the trace and the headers of the list, and no entry of the context", async () => {
    upstream = { describeTable: answering };
    const headers = Object.assign(Object.create(null), {
      traceparent: "00-1-2-01",
      "x-lancedb-database": "d",
      "x-secret": "not passed",
      "grpc-timeout": "1S",
    });
    const fixed = await open({ headers: { "x-tenant": "blue" } });
    await describeOn(fixed, { requestId: "request-7", headers }, { "header.x-mine": "1" });
    await fixed.close();
    assert.equal(seen?.requestId, "request-7");
    const { traceparent, "x-lancedb-database": database, "x-tenant": tenant } = seen.headers;
    assert.deepEqual([traceparent, database, tenant], ["00-1-2-01", "d", "blue"]);
    assert.equal(seen.headers["x-mine"], undefined);
    assert.equal(seen.headers["x-secret"], undefined);
  });

  it("sends the client's credentials, or its own instead", async () => {
    upstream = { describeTable: answering };
    const identity = { apiKey: "key", authToken: "token" };
    await describeOn(backend, { identity });
    assert.deepEqual(seen?.identity, identity);
    const service = await open({ identity: { kind: "service", apiKey: "service" } });
    await describeOn(service, { identity }, { "header.authorization": "Bearer mine" });
    await service.close();
    assert.deepEqual(seen?.identity, { apiKey: "service", authToken: undefined });
  });

  it("takes a refusal of its own credentials for the upstream's fault, and of the client's for the client's", async () => {
    const refuse = async () => {
      throw new LanceError("Unauthenticated", "who is that?");
    };
    upstream = { describeTable: refuse, createTable: refuse };
    const service = await open({ identity: { kind: "service", apiKey: "service" } });
    for (const [on, name] of [
      [service, "ServiceUnavailable"],
      [backend, "Unauthenticated"],
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
    upstream = {
      describeTable: async () => {
        throw new LanceError("TableVersionNotFound", "no version 7 of é", {
          detail: "longer",
          headers: { "retry-after": "3" },
        });
      },
    };
    const error = await describeOn(backend, { requestId: "mine" }).catch((thrown: unknown) => thrown);
    assert.ok(isLanceError(error, "TableVersionNotFound"));
    const { message, detail, instance, headers } = error;
    assert.deepEqual([message, detail, instance], ["no version 7 of é", "longer", "mine"]);
    assert.deepEqual(headers, { "retry-after": "3" });
  });

  it("tells rows that borrow a code by their type", async () => {
    upstream = {
      describeTable: async () => {
        throw new LanceError("PayloadTooLarge", "too large");
      },
    };
    await assert.rejects(describeOn(backend), failsWith("PayloadTooLarge"));
  });

  it("carries the deadline on, and says that it has passed", async () => {
    upstream = {
      describeTable: async (_, call) => {
        await sleep(5_000, undefined, { signal: call.signal });
        return answering();
      },
    };
    await assert.rejects(describeOn(backend, { deadline: Date.now() + 100 }), failsWith("DeadlineExceeded"));
    const left = (seen?.deadline ?? 0) - Date.now();
    assert.ok(left < 1_000, `the upstream's deadline is ${left} ms away`);
    const bounded = await open({ timeoutMs: 50 });
    await assert.rejects(describeOn(bounded), failsWith("DeadlineExceeded", /upstream/));
    await bounded.close();
  });

  it("cancels the upstream's call with its own", async () => {
    const cancelled = Promise.withResolvers<void>();
    const arrived = Promise.withResolvers<void>();
    upstream = {
      describeTable: (_, call) => {
        call.signal.addEventListener("abort", () => cancelled.resolve());
        arrived.resolve();
        return new Promise(() => {});
      },
    };
    const controller = new AbortController();
    const answer = describeOn(backend, { signal: controller.signal });
    const reason = new LanceError("Cancelled", "the client has gone");
    await arrived.promise;
    controller.abort(reason);
    await assert.rejects(answer, reason);
    await cancelled.promise;
  });

  it("reads no more of a body than the upstream takes, and releases what has gone", async () => {
    const go = Promise.withResolvers<void>();
    let received = 0;
    upstream = {
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
    const answer = (backend.operations.createTable as LanceNamespace["createTable"])(request, body(), call);
    await steady(() => taken);
    assert.ok(taken < 64 * MIB, `${taken} bytes are taken ahead`);
    go.resolve();
    assert.equal((await answer).location, "a/b");
    assert.deepEqual([received, released], [96 * MIB, 96 * MIB]);
  });

  it("fails an upload with what its body fails with, and cancels it at the upstream", async () => {
    const begun = Promise.withResolvers<void>();
    const outcome = Promise.withResolvers<unknown>();
    upstream = {
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
    const answer = (backend.operations.createTable as LanceNamespace["createTable"])(request, body(), call);
    await assert.rejects(answer, broken);
    assert.ok((await outcome.promise) instanceof Error);
  });

  it("answers an upload that the upstream refuses early", async () => {
    upstream = {
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
    const answer = (backend.operations.createTable as LanceNamespace["createTable"])(
      request,
      endless(),
      beginCall(createTable),
    );
    await assert.rejects(answer, failsWith("TableAlreadyExists"));
  });

  it("asks for no more of an answer than is read, and cancels it when its reader leaves", async () => {
    let made = 0;
    const left = Promise.withResolvers<void>();
    upstream = {
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
    const answer = (backend.operations.queryTable as LanceNamespace["queryTable"])(
      request,
      beginCall(queryTable),
    );
    let read = 0;
    for await (const { data } of answer) {
      read += data?.data.length ?? 0;
      await steady(() => made);
      assert.ok(made < 100, `${made} pieces were made for a reader of one`);
      break;
    }
    assert.equal(read, MIB);
    await left.promise;
  });

  it("fails an answer that fails in the middle", async () => {
    upstream = {
      async *queryTable() {
        yield create(QueryTableResponseSchema, { data: { contentType: "x", data: new Uint8Array(10) } });
        throw new LanceError("InvalidTableState", "a file is gone");
      },
    };
    const request = create(queryTable.input, { id: ["t"] });
    const answer = (backend.operations.queryTable as LanceNamespace["queryTable"])(
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

  it("says that an upstream is away without its address, and finds it when it is back", async () => {
    const gone = await startServer(fakeBackend({ describeTable: answering }));
    const { port } = gone;
    const alone = await open({ addresses: [`127.0.0.1:${port}`] });
    assert.equal(await alone.ready(), true);
    await gone.close();
    await assert.rejects(describeOn(alone), failsWith("ServiceUnavailable", /^[^0-9]*$/));
    assert.equal(await alone.ready(), false);
    const back = await startServer(fakeBackend({ describeTable: answering }), { port });
    for (;;) {
      const answer = await describeOn(alone).catch(() => undefined);
      if (answer !== undefined) break;
      await sleep(50);
    }
    await alone.close();
    await back.close();
  });

  it("gives up a connection that is not made in time", async (t) => {
    // The server accepts connections and sends nothing, so that no HTTP/2 session starts.
    const sockets = new Set<Socket>();
    const silent = createServer((socket) => sockets.add(socket)).listen(0, "127.0.0.1");
    t.onTestFinished(() => {
      silent.close();
      for (const socket of sockets) socket.destroy();
    });
    await once(silent, "listening");
    const { port } = silent.address() as AddressInfo;
    const slow = await open({ addresses: [`127.0.0.1:${port}`], connectMs: 100 });
    await assert.rejects(describeOn(slow), failsWith("ServiceUnavailable", /reached/));
    await slow.close();
  });

  it("calls several addresses in turn, and leaves out those that are away", async () => {
    const counts = [0, 0];
    const servers = await Promise.all(
      counts.map((_, index) =>
        startServer(
          fakeBackend({
            describeTable: async () => {
              counts[index] = (counts[index] ?? 0) + 1;
              return answering();
            },
          }),
        ),
      ),
    );
    const several = await open({ addresses: servers.map(({ port }) => `127.0.0.1:${port}`) });
    for (let call = 0; call < 20; call += 1) await describeOn(several);
    assert.ok(
      counts.every((count) => count >= 5),
      `they got ${counts}`,
    );
    await servers[0]?.close();
    let failures = 0;
    for (let call = 0; call < 10; call += 1) {
      await describeOn(several).catch(() => {
        failures += 1;
      });
    }
    assert.ok(failures <= 1, `${failures} calls failed`);
    await several.close();
    await servers[1]?.close();
  });
});
