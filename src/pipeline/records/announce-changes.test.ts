import assert from "node:assert/strict";
import { create, type DescMethod } from "@bufbuild/protobuf";
import { describe, it } from "vitest";
import { createCaller } from "../../../test/support/caller.ts";
import { fakeBackend } from "../../../test/support/server.ts";
import { CreateNamespaceMode, DropNamespaceBehavior } from "../../gen/lance/namespace/v1/namespace_pb.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { isReadAction } from "../../namespace/call/principal.ts";
import { CHANGE_TYPES, type ChangeEvent } from "../../namespace/change-event.ts";
import { type ErrorName, LanceError } from "../../namespace/errors.ts";
import type { Identifier } from "../../namespace/identifier.ts";
import type { LanceNamespace } from "../../namespace/lance-namespace.ts";
import { OPERATIONS } from "../../namespace/operations/operations.ts";
import type { AnyOperation } from "../../namespace/operations/touch.ts";
import type { Interceptor } from "../call/interceptor.ts";
import { changesOf } from "./announce-changes.ts";

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

describe("changes", () => {
  const { method } = LanceNamespaceService;

  /** Operations that are writes by the rights that they need, and change nothing that others see. */
  const UNSEEN = [
    ...["createMultipartWrite", "abortMultipartWrite", "cancelJob", "createView", "dropView"],
    ...["reportDriverProgress", "commitDriverVersion", "finishDriverTask"],
    ...["createFunction", "describeFunction", "listFunctions", "dropFunction", "listFunctionErrors"],
    ...["createSecret", "alterSecret", "describeSecret", "dropSecret", "listSecrets"],
    ...["manageLsm", "manageFunctions", "manageViews", "manageSecrets", "manageAuthorization", "manageJobs"],
    ...["listKeys", "createKey", "revokeKey", "listRoles", "listPolicies", "tryAccess"],
  ];

  /** Returns the changes of a request, as texts. */
  async function changed(
    { localName, input }: DescMethod,
    init: object,
    id: Identifier = [],
  ): Promise<string[]> {
    const changes = await changesOf(localName as AnyOperation, create(input, init as never), id);
    return changes.map(({ type, operation, id: path, to, entry }) =>
      [type, operation, path.join("/"), to && `to ${to.join("/")}`, entry]
        .filter((each) => each !== undefined)
        .join(" "),
    );
  }

  describe("the changes of operations", () => {
    it("are there for every operation that writes, except for those that nobody sees, and for no read", () => {
      const all = Object.values(OPERATIONS);
      const silent = all.filter(({ action, event }) => !isReadAction(action) && event === undefined);
      assert.deepEqual(silent.map(({ method: { localName } }) => localName).sort(), UNSEEN.sort());
      assert.deepEqual(
        all.filter(({ action, event }) => isReadAction(action) && event !== undefined),
        [],
      );
    });

    it("fit the kind of the object, and all kinds of changes occur", () => {
      for (const { event, kind, method } of Object.values(OPERATIONS)) {
        if (event !== undefined && kind !== "Database")
          assert.ok(event.startsWith(`${kind.toLowerCase()}.`), method.name);
      }
      const seen = new Set<unknown>(Object.values(OPERATIONS).map(({ event }) => event));
      assert.deepEqual(
        CHANGE_TYPES.filter((type) => !seen.has(type)),
        [],
      );
    });

    it("have the new name of a table", async () => {
      assert.deepEqual(await changed(method.renameTable, { newTableName: "b" }, ["n", "a"]), [
        "table.renamed renameTable n/a to n/b",
      ]);
      const init = { newTableName: "b", newNamespaceId: ["m"] };
      assert.deepEqual(await changed(method.renameTable, init, ["n", "a"]), [
        "table.renamed renameTable n/a to m/b",
      ]);
    });

    it("of a commit are those of its entries", async () => {
      const operations = [
        { operation: { case: "declareTable", value: { id: ["a"] } } },
        { operation: { case: "createTableVersion", value: { id: ["n", "b"] } } },
        { operation: { case: "deleteTableVersions", value: { id: ["c"] } } },
        { operation: { case: "deregisterTable", value: { id: ["d"] } } },
      ];
      assert.deepEqual(await changed(method.batchCommitTables, { operations }), [
        "table.declared declareTable a 0",
        "table.data_changed createTableVersion n/b 1",
        "table.versions_deleted batchDeleteTableVersions c 2",
        "table.deregistered deregisterTable d 3",
      ]);
      assert.deepEqual(
        await changed(method.batchCreateTableVersions, { entries: [{ id: ["a"] }, { id: ["b"] }] }),
        ["table.data_changed createTableVersion a 0", "table.data_changed createTableVersion b 1"],
      );
      assert.deepEqual(await changed(method.batchCommitTables, {}), []);
    });

    it("of a transaction are those of its table", async () => {
      assert.deepEqual(await changed(method.alterTransaction, {}, ["n", "t", "7"]), [
        "table.transaction_changed alterTransaction n/t",
      ]);
    });
  });
});
