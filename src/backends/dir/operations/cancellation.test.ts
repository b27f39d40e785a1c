import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { Int32 } from "apache-arrow";
import { type TestContext, test } from "vitest";
import {
  failsWith,
  openClient,
  silent,
  temporaryDirectory,
} from "../../../../test/fixtures/dir/directory-backend.ts";
import { streamOf } from "../../../../test/support/rows.ts";
import { MergeInsertIntoTableRequestSchema } from "../../../gen/lance/namespace/v1/data_pb.ts";
import {
  CountTableRowsRequestSchema,
  QueryTableRequestSchema,
} from "../../../gen/lance/namespace/v1/query_pb.ts";
import { LanceNamespaceService } from "../../../gen/lance/namespace/v1/service_pb.ts";
import type { Operation } from "../../../namespace/lance-namespace.ts";
import { createDirectoryBackend } from "../index.ts";

const ROWS = 100_000;

async function opened(t: TestContext) {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  const ids = Array.from({ length: ROWS }, (_, id) => id);
  await client.upload("createTable", "t", {}, streamOf({ id: { type: new Int32(), values: ids } }));
  const backend = await createDirectoryBackend({ root, log: silent });
  t.onTestFinished(() => backend.close());
  return { client, operations: backend.operations };
}

function callOf(operation: Operation, signal: AbortSignal, deadline?: number) {
  return {
    method: LanceNamespaceService.method[operation],
    protocol: "grpc" as const,
    requestId: "test",
    headers: {},
    signal,
    deadline,
    accept: undefined,
    log: silent,
    id: ["t"],
    identity: { apiKey: undefined, authToken: undefined },
    holdBody() {},
    releaseBody() {},
    database: undefined,
    responseHeaders: {},
    decisions: [],
    note() {},
  };
}

test("a query that is cancelled between two batches ends with Cancelled", async (t) => {
  const { operations } = await opened(t);
  const controller = new AbortController();
  const request = create(QueryTableRequestSchema, {});
  const result = operations.queryTable?.(request, callOf("queryTable", controller.signal));
  assert.ok(result);
  const messages = result[Symbol.asyncIterator]();
  assert.equal((await messages.next()).done, false);
  controller.abort();
  await assert.rejects(async () => {
    for (let next = await messages.next(); !next.done; next = await messages.next());
  }, failsWith("Cancelled"));
});

test("calls that are already cancelled end before the engine works", async (t) => {
  const { operations, client } = await opened(t);
  const signal = AbortSignal.abort();
  const count = operations.countTableRows?.(
    create(CountTableRowsRequestSchema, {}),
    callOf("countTableRows", signal),
  );
  await assert.rejects(count as Promise<unknown>, failsWith("Cancelled"));
  const merge = operations.mergeInsertIntoTable?.(
    create(MergeInsertIntoTableRequestSchema, { on: ["id"], whenNotMatchedBySourceDelete: true }),
    (async function* () {
      yield streamOf({ id: { type: new Int32(), values: [1] } });
    })(),
    callOf("mergeInsertIntoTable", signal),
  );
  await assert.rejects(merge as Promise<unknown>, failsWith("Cancelled"));
  assert.equal((await client.call("countTableRows", "t")).count, BigInt(ROWS));
});

test("a count ends at its deadline in the engine, which would otherwise go on for a caller that is gone", async (t) => {
  const { operations } = await opened(t);
  const digests = ["sha512", "sha384", "sha256", "sha224"];
  const isNull = (digest: string) => `${`${digest}(`.repeat(8)}CAST(id AS STRING)${")".repeat(8)} IS NULL`;
  const predicate = digests.map(isNull).join(" OR ");
  const call = callOf("countTableRows", new AbortController().signal, Date.now());
  const count = operations.countTableRows?.(create(CountTableRowsRequestSchema, { predicate }), call);
  await assert.rejects(count as Promise<unknown>, failsWith("DeadlineExceeded"));
});

test("short calls are answered while other calls read results", async (t) => {
  const { operations, client } = await opened(t);
  const controller = new AbortController();
  const scans = Array.from({ length: 4 }, async () => {
    while (!controller.signal.aborted) {
      const request = create(QueryTableRequestSchema, {});
      const { signal } = new AbortController();
      for await (const _ of operations.queryTable?.(request, callOf("queryTable", signal)) ?? []);
    }
  });
  for (let round = 0; round < 20; round++) {
    const started = performance.now();
    await client.call("describeTable", "t", { loadDetailedMetadata: true });
    const milliseconds = performance.now() - started;
    assert.ok(milliseconds < 2000, `${milliseconds} ms`);
  }
  controller.abort();
  await Promise.all(scans);
});
