import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { create, type Message } from "@bufbuild/protobuf";
import { Metadata } from "@grpc/grpc-js";
import { pino } from "pino";
import { afterAll, beforeAll, describe, it, vi } from "vitest";
import { paddedStream } from "../../../test/support/arrow.ts";
import { beginCall } from "../../../test/support/caller.ts";
import { fakeBackend, startServer, type TestServer } from "../../../test/support/server.ts";
import { CreateTableResponseSchema } from "../../gen/lance/namespace/v1/data_pb.ts";
import { CreateNamespaceResponseSchema } from "../../gen/lance/namespace/v1/namespace_pb.ts";
import { QueryTableResponseSchema } from "../../gen/lance/namespace/v1/query_pb.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { DescribeTableResponseSchema } from "../../gen/lance/namespace/v1/table_pb.ts";
import type { Call } from "../../namespace/call/call.ts";
import { isLanceError, LanceError } from "../../namespace/errors.ts";
import type { Backend, LanceNamespace } from "../../namespace/lance-namespace.ts";
import { answerOf } from "./answer.ts";
import { createGrpcBackend, type GrpcBackendOptions } from "./index.ts";

const log = pino({ level: "silent" });
const { describeTable, createNamespace, createTable, queryTable } = LanceNamespaceService.method;
const MIB = 1024 * 1024;
/** Longer than an upstream in this process needs for anything, in milliseconds. */
const PATIENCE_MS = 500;
/** An address without a listener. */
const AWAY = "127.0.0.1:1";

describe("the gRPC backend before an upstream in trouble", () => {
  let upstream: Partial<LanceNamespace> = {};
  let server: TestServer;

  beforeAll(async () => {
    const names = ["describeTable", "createNamespace", "createTable", "queryTable"] as const;
    const operations = names.map((name) => [
      name,
      (...args: never[]) => (upstream[name] as (...args: never[]) => unknown)(...args),
    ]);
    server = await startServer(fakeBackend(Object.fromEntries(operations)));
  });
  afterAll(() => server.close());

  /** Runs a test with a backend. */
  async function using(
    options: Partial<GrpcBackendOptions>,
    test: (operations: LanceNamespace) => Promise<void>,
  ): Promise<void> {
    const address = `127.0.0.1:${server.port}`;
    const backend: Backend = await createGrpcBackend({ addresses: [address], log, ...options });
    try {
      await test(backend.operations as LanceNamespace);
    } finally {
      await backend.close();
    }
  }

  /** Returns a function that fails a number of times and then answers. */
  function failing<T extends Message>(times: number, answer: T) {
    let calls = 0;
    return {
      get calls() {
        return calls;
      },
      handler: async (): Promise<T> => {
        calls += 1;
        if (calls <= times) throw new LanceError("ServiceUnavailable", "not now");
        return answer;
      },
    };
  }

  const described = create(DescribeTableResponseSchema, { table: "t" });
  const failingOnce = () => ({ describeTable: failing(1, described).handler });
  const describeOn = ({ describeTable: run }: LanceNamespace, call: Call) =>
    run(create(describeTable.input, { id: ["t"] }), call);

  it("makes a read again, and says so", () =>
    using({}, async (operations) => {
      const { handler } = failing(2, described);
      upstream = { describeTable: handler };
      const call = beginCall(describeTable);
      assert.equal((await describeOn(operations, call)).table, "t");
      assert.deepEqual(call.decisions, ["retry", "retry"]);
    }));

  it("makes a change again only if it has a key", () =>
    using({}, async (operations) => {
      for (const [headers, calls] of [
        [{}, 1],
        [{ "idempotency-key": "k" }, 2],
      ] as const) {
        const made = failing(1, create(CreateNamespaceResponseSchema));
        upstream = { createNamespace: made.handler };
        const call = beginCall(createNamespace, { headers: { ...headers } });
        const answer = operations.createNamespace(create(createNamespace.input, { id: ["n"] }), call);
        if (calls === 1) await assert.rejects(answer, /not now/);
        else await answer;
        assert.equal(made.calls, calls);
      }
    }));

  it("sends a body to an address that is there, once", () =>
    using({ addresses: [AWAY, `127.0.0.1:${server.port}`] }, async (operations) => {
      upstream = {
        createTable: async (_, data) => {
          let bytes = 0;
          for await (const piece of data) bytes += piece.length;
          return create(CreateTableResponseSchema, { version: BigInt(bytes) });
        },
      };
      for (let turn = 0; turn < 4; turn += 1) {
        async function* body() {
          yield paddedStream(MIB);
          yield new Uint8Array(3);
        }
        const request = create(createTable.input, { id: ["t"] });
        const { version } = await operations.createTable(request, body(), beginCall(createTable));
        assert.equal(version, BigInt(MIB + 3));
      }
    }));

  it("asks a second time when the first takes long, and cancels what is not needed", () =>
    using({ resilience: { hedgeAfterMs: 20 } }, async (operations) => {
      const cancelled = Promise.withResolvers<void>();
      let calls = 0;
      upstream = {
        describeTable: async (_, { signal }) => {
          calls += 1;
          if (calls > 1) return described;
          signal.addEventListener("abort", () => cancelled.resolve());
          return new Promise<never>(() => {});
        },
      };
      const call = beginCall(describeTable);
      assert.equal((await describeOn(operations, call)).table, "t");
      assert.deepEqual(call.decisions, ["hedge", "hedge_won"]);
      await cancelled.promise;
    }));

  it("does not call an upstream that has only failed", () =>
    using({ resilience: { retries: 0, circuitFailures: 3, circuitOpenMs: 60_000 } }, async (operations) => {
      const made = failing(100, described);
      upstream = { describeTable: made.handler };
      let last: unknown;
      for (let turn = 0; turn < 10; turn += 1) {
        last = await describeOn(operations, beginCall(describeTable)).catch((thrown: unknown) => thrown);
      }
      assert.equal(made.calls, 3);
      assert.ok(isLanceError(last, "ServiceUnavailable") && Number(last.headers["retry-after"]) > 1);
    }));

  it("lets calls wait for a place, refuses more at once, and gives places back", () =>
    using({ maxCalls: 1, maxWaiting: 1, resilience: { retries: 0 } }, async (operations) => {
      const arrived = Promise.withResolvers<void>();
      const release = Promise.withResolvers<void>();
      upstream = {
        describeTable: async () => {
          arrived.resolve();
          await release.promise;
          return described;
        },
        async *queryTable() {
          for (;;)
            yield create(QueryTableResponseSchema, { data: { contentType: "x", data: new Uint8Array(9) } });
        },
      };
      const first = describeOn(operations, beginCall(describeTable));
      await arrived.promise;
      const second = describeOn(operations, beginCall(describeTable));
      await assert.rejects(describeOn(operations, beginCall(describeTable)), (error) => {
        assert.ok(isLanceError(error, "Throttling"), String(error));
        return error.headers["retry-after"] === "1";
      });
      release.resolve();
      assert.deepEqual([(await first).table, (await second).table], ["t", "t"]);
      const request = create(queryTable.input, { id: ["t"] });
      for (let round = 0; round < 3; round += 1) {
        for await (const _ of operations.queryTable(request, beginCall(queryTable))) break;
      }
      upstream = failingOnce();
      await assert.rejects(describeOn(operations, beginCall(describeTable)));
      assert.equal((await describeOn(operations, beginCall(describeTable))).table, "t");
    }));

  it("does not count the pauses of a sender or a reader as the upstream's", () => {
    // The upstream shares the event loop with the gateway, and 64 MiB keep that busy.
    const patience = 4 * PATIENCE_MS;
    const pause = () => sleep(patience + PATIENCE_MS);
    return using({ timeLimits: { firstByteMs: patience, idleMs: patience } }, async (operations) => {
      upstream = {
        createTable: async (_, data) => {
          for await (const piece of data) assert.ok(piece);
          return create(CreateTableResponseSchema, { version: 1n });
        },
        async *queryTable() {
          for (let made = 0; made < 64; made += 1) {
            yield create(QueryTableResponseSchema, { data: { contentType: "x", data: new Uint8Array(MIB) } });
          }
        },
      };
      async function upload() {
        async function* body() {
          yield paddedStream(MIB);
          // The sender pauses for longer than the upstream may.
          await pause();
          yield new Uint8Array(MIB);
        }
        const request = create(createTable.input, { id: ["t"] });
        await operations.createTable(request, body(), beginCall(createTable));
      }
      async function download() {
        const request = create(queryTable.input, { id: ["t"] });
        let pieces = 0;
        for await (const _ of operations.queryTable(request, beginCall(queryTable))) {
          // So does the reader.
          if (pieces === 0) await pause();
          pieces += 1;
        }
        assert.equal(pieces, 64);
      }
      await Promise.all([upload(), download()]);
    });
  });

  it("gives up an upstream that does not take a body", () =>
    using({ timeLimits: { firstByteMs: PATIENCE_MS } }, async (operations) => {
      upstream = { createTable: () => new Promise(() => {}) };
      async function* endless() {
        for (;;) {
          yield new Uint8Array(MIB);
          await sleep(1);
        }
      }
      const request = create(createTable.input, { id: ["t"] });
      const answer = operations.createTable(request, endless(), beginCall(createTable));
      await assert.rejects(answer, (error) => isLanceError(error, "DeadlineExceeded"));
    }));
});

describe("answerOf", () => {
  const call = beginCall(describeTable);

  it("takes a channel that was just closed for an upstream that cannot be reached, and leaves no timer", async (t) => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    t.onTestFinished(() => void vi.useRealTimers());
    const answer = answerOf({ call, signal: call.signal, onEnd() {} }, ({ patience }) => {
      patience.awaitFirst(100);
      throw new Error("Channel has been shut down");
    });
    await assert.rejects(answer, (error) => error instanceof LanceError && error.fault === "unreached");
    vi.advanceTimersByTime(200);
  });

  it("counts the gateway's own limit as silence, and the client's deadline not", async () => {
    for (const [deadline, fault] of [
      [undefined, "silent"],
      [Date.now() + 60_000, "silent"],
      [1, undefined],
    ] as const) {
      const over = Object.assign(new Error("4"), { code: 4, details: "", metadata: new Metadata() });
      const answer = answerOf(
        { call: beginCall(describeTable, { deadline }), signal: call.signal, endsAt: 2, onEnd() {} },
        (pending) => {
          setImmediate(() => pending.fail(over));
          return { cancel() {} };
        },
      );
      await assert.rejects(answer, (error) => {
        assert.ok(isLanceError(error, "DeadlineExceeded"));
        assert.equal(error.fault, fault);
        return true;
      });
    }
  });
});
