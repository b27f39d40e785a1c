import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { describe, it } from "vitest";
import { createCaller } from "../../../test/support/caller.ts";
import { fakeBackend } from "../../../test/support/server.ts";
import { CreateNamespaceMode, DropNamespaceBehavior } from "../../gen/lance/namespace/v1/namespace_pb.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import type { ChangeEvent } from "../../namespace/change-event.ts";
import { type ErrorName, LanceError } from "../../namespace/errors.ts";
import type { LanceNamespace } from "../../namespace/lance-namespace.ts";
import type { Interceptor } from "../call/interceptor.ts";

const { method } = LanceNamespaceService;

/** Creates a client of a backend, and collects what it announces. */
function callerOf(operations: Partial<LanceNamespace>, interceptors: readonly Interceptor[] = []) {
  const events: ChangeEvent[] = [];
  const sink = { announce: async (all: readonly ChangeEvent[]) => void events.push(...all) };
  const client = createCaller({
    ...{ backend: fakeBackend(operations), limits: { maxUploadBytes: 1_000 } },
    ...{ announcements: { sink, source: "/test" }, interceptors },
  });
  const facts = () =>
    events.map(({ type, subject, data: { request, ...data } }) => {
      assert.ok(request.length > 0);
      assert.equal(data.object, subject);
      return JSON.parse(JSON.stringify({ type: type.replace(/^lance\.gateway\./, ""), ...data }));
    });
  return { client, events, facts };
}

const done = { outcome: "done" } as const;

describe("the announcement of changes", () => {
  it("is an event of CloudEvents, with an id of its own", async () => {
    const dropTable = async () => create(method.dropTable.output);
    const { client, events } = callerOf({ dropTable });
    await client.dropTable({ id: ["team", "people"] });
    await client.dropTable({ id: ["team", "people"] });
    const [{ id, time, data, ...rest } = assert.fail(), second] = events;
    assert.deepEqual(rest, {
      ...{ specversion: "1.0", source: "/test", type: "lance.gateway.table.dropped" },
      ...{ subject: "team$people", datacontenttype: "application/json" },
    });
    assert.match(id, /^[0-9a-f-]{36}$/);
    assert.notEqual(second?.id, id);
    assert.ok(Math.abs(Date.parse(time) - Date.now()) < 60_000);
    assert.equal(data.operation, "DropTable");
  });

  it("has the version, the job and the choices that the call states", async () => {
    const { client, facts } = callerOf({
      insertIntoTable: async () => create(method.insertIntoTable.output, { version: 7n }),
      createTableVersion: async () => create(method.createTableVersion.output, { version: { version: 8n } }),
      createTableIndex: async () => create(method.createTableIndex.output, { jobId: "j" }),
      createNamespace: async () => create(method.createNamespace.output),
      dropNamespace: async () => create(method.dropNamespace.output),
    });
    await client.insertIntoTable({ id: ["t"] }, new Uint8Array());
    await client.createTableVersion({ id: ["t"], version: 8n });
    await client.createTableIndex({ id: ["t"] });
    await client.createNamespace({ id: ["n"], mode: CreateNamespaceMode.EXIST_OK });
    await client.dropNamespace({ id: ["n"], behavior: DropNamespaceBehavior.CASCADE });
    assert.deepEqual(facts(), [
      { type: "table.data_changed", object: "t", operation: "InsertIntoTable", version: 7, ...done },
      { type: "table.data_changed", object: "t", operation: "CreateTableVersion", version: 8, ...done },
      { type: "table.indices_changed", object: "t", operation: "CreateTableIndex", job: "j", ...done },
      { type: "namespace.created", object: "n", operation: "CreateNamespace", mode: "exist_ok", ...done },
      { type: "namespace.dropped", object: "n", operation: "DropNamespace", behavior: "cascade", ...done },
    ]);
  });

  it("is one for each entry of a commit, also if an entry names its table as a text", async () => {
    const batchCommitTables = async () => create(method.batchCommitTables.output);
    const { client, facts } = callerOf({ batchCommitTables });
    await client.batchCommitTables({
      operations: [
        { operation: { case: "declareTable", value: { identifier: "n$a" } } },
        { operation: { case: "createTableVersion", value: { id: ["b"], version: 3n } } },
      ],
    });
    assert.deepEqual(facts(), [
      { type: "table.declared", object: "n$a", operation: "DeclareTable", ...done },
      { type: "table.data_changed", object: "b", operation: "CreateTableVersion", version: 3, ...done },
    ]);
  });

  it("says so if nobody knows what a call has changed, and is silent if it has changed nothing", async () => {
    const outcomes: Partial<Record<ErrorName, boolean>> = {
      ...{ OutcomeUnknown: true, DeadlineExceeded: true, Cancelled: true, Internal: true, DataLoss: true },
      ...{ TableNotFound: false, ServiceUnavailable: false, Throttling: false, Unsupported: false },
      ...{ ConcurrentModification: false, PermissionDenied: false, InvalidInput: false },
    };
    for (const [name, isAnnounced] of Object.entries(outcomes)) {
      const { client, facts } = callerOf({
        dropTable: () => Promise.reject(new LanceError(name as ErrorName, "for the test")),
      });
      await assert.rejects(client.dropTable({ id: ["t"] }));
      const expected = { type: "table.dropped", object: "t", operation: "DropTable", outcome: "unknown" };
      assert.deepEqual(facts(), isAnnounced ? [expected] : [], name);
    }
  });

  it("is silent for reads, and for what an earlier step answers", async () => {
    const answer: Interceptor = async (call) => create(call.method.output) as never;
    const { client, events } = callerOf({ describeTable: async () => create(method.describeTable.output) }, [
      (call, request, next) => (call.id[0] === "hidden" ? answer(call, request, next) : next(call, request)),
    ]);
    await client.describeTable({ id: ["t"] });
    await client.dropTable({ id: ["hidden"] });
    assert.deepEqual(events, []);
  });

  it("comes before the answer of the call", async () => {
    const order: string[] = [];
    const sink = {
      async announce() {
        await new Promise(setImmediate);
        order.push("announced");
      },
    };
    const dropTable = async () => create(method.dropTable.output);
    const client = createCaller({
      ...{ backend: fakeBackend({ dropTable }), limits: { maxUploadBytes: 1_000 } },
      announcements: { sink, source: "/test" },
    });
    await client.dropTable({ id: ["t"] });
    order.push("answered");
    assert.deepEqual(order, ["announced", "answered"]);
  });
});
