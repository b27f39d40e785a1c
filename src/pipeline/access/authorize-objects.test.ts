import assert from "node:assert/strict";
import { create, type DescMethodUnary, type Message } from "@bufbuild/protobuf";
import { pino } from "pino";
import { describe, it, onTestFinished, test, vi } from "vitest";
import { takeAllFor } from "../../../test/fixtures/auth/authenticator.ts";
import { ann } from "../../../test/fixtures/auth/principal.ts";
import { createCaller } from "../../../test/support/caller.ts";
import { createDatabasesBackend } from "../../backends/databases/index.ts";
import {
  CancelJobResponseSchema,
  DescribeJobResponseSchema,
  ListJobsResponseSchema,
} from "../../gen/lance/gateway/v1/job_pb.ts";
import { LanceDbService } from "../../gen/lance/gateway/v1/lancedb_pb.ts";
import { CreateTableMode, CreateTableResponseSchema } from "../../gen/lance/namespace/v1/data_pb.ts";
import {
  CreateNamespaceMode,
  CreateNamespaceResponseSchema,
  DropNamespaceBehavior,
  DropNamespaceResponseSchema,
  type ListNamespacesRequest,
  ListNamespacesResponseSchema,
} from "../../gen/lance/namespace/v1/namespace_pb.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import {
  DescribeTableResponseSchema,
  type ListTablesRequest,
  ListTablesResponseSchema,
} from "../../gen/lance/namespace/v1/table_pb.ts";
import type { BatchCommitTablesResponse } from "../../gen/lance/namespace/v1/transaction_pb.ts";
import type { Access } from "../../namespace/authorizer.ts";
import { createCall } from "../../namespace/call/call.ts";
import { errorEntry, LanceError } from "../../namespace/errors.ts";
import type { Backend } from "../../namespace/lance-namespace.ts";
import type { Database } from "../call/databases.ts";
import type { Route } from "../call/route.ts";
import { createService } from "../create-service.ts";

const { describeTable, dropNamespace, listNamespaces, createMaterializedView } = LanceNamespaceService.method;
const { describeJob, cancelJob, listJobs } = LanceDbService.method;

function databaseOf(jobs: Readonly<Record<string, string>> = {}): Database {
  const backend: Backend = {
    name: "memory",
    operations: { describeTable: async () => create(DescribeTableResponseSchema) },
    extensions: {
      listJobs: async () =>
        create(ListJobsResponseSchema, {
          jobs: Object.entries(jobs).map(([jobId, table]) => ({ jobId, table })),
        }),
      describeJob: async ({ jobId }) => create(DescribeJobResponseSchema, { jobId }),
      cancelJob: async () => create(CancelJobResponseSchema),
    },
    ready: async () => true,
    close: async () => {},
  };
  return { backend, limits: { maxUploadBytes: 1_000 } };
}

/** Creates a caller of databases that may do what a function says; failures are names of the error table and texts. */
function callerOf(
  databases: ReadonlyMap<string | undefined, Database>,
  allows: (access: Access) => boolean | Promise<boolean>,
  routes?: readonly Route[],
) {
  const asked: string[] = [];
  const service = createService({
    databases,
    routes,
    authenticator: takeAllFor(ann),
    authorizer: {
      allows(_, access) {
        const { kind, database, id } = access.object;
        asked.push(`${access.operation} ${kind} ${[database ?? "-", ...id].join("/")}`);
        return allows(access);
      },
      close() {},
    },
  });
  async function call(method: DescMethodUnary, init: object, headers: Record<string, string> = {}) {
    const context = createCall({
      ...{ method, protocol: "grpc", requestId: "1", headers, deadline: undefined, accept: undefined },
      ...{ signal: new AbortController().signal, log: pino({ level: "silent" }) },
    });
    try {
      return await service.unary(method, create(method.input, init as never), context);
    } catch (error) {
      assert.ok(error instanceof LanceError);
      assert.equal(error.entry, errorEntry(error.kind));
      return `${error.kind}: ${error.message}`;
    }
  }
  return { call, asked };
}

describe("the decision about objects", () => {
  const byHeader: readonly Route[] = [{ by: "header" }];
  const sales = databaseOf();
  const named = new Map([
    ["sales", sales],
    [undefined, sales],
  ]);

  it("knows a database by one name, also for calls that name none", async () => {
    const { call, asked } = callerOf(named, () => true, byHeader);
    await call(describeTable, { id: ["t"] });
    await call(describeTable, { id: ["t"] }, { "x-service-database": "sales" });
    assert.deepEqual(asked, ["DescribeTable Table sales/t", "DescribeTable Table sales/t"]);
  });

  it("comes before the existence of the database", async () => {
    const missing = { "x-service-database": "missing" };
    const refused = await callerOf(named, () => false, byHeader).call(describeTable, { id: ["t"] }, missing);
    assert.equal(refused, "PermissionDenied: DescribeTable (describe) on missing$t is not allowed");
    const allowed = await callerOf(named, () => true, byHeader).call(describeTable, { id: ["t"] }, missing);
    assert.match(String(allowed), /^NamespaceNotFound/);
  });

  it("hides databases in the list of them", async () => {
    const all = new Map<string | undefined, Database>([
      ["hidden", databaseOf()],
      ["sales", sales],
      [undefined, { backend: createDatabasesBackend(["hidden", "sales"]), limits: sales.limits }],
    ]);
    const { call, asked } = callerOf(all, ({ object }) => object.database !== "hidden", [
      { by: "namespace" },
    ]);
    const { namespaces } = (await call(listNamespaces, {})) as Message & { namespaces: string[] };
    assert.deepEqual(namespaces, ["sales"]);
    // The list asks about a database as calls to it do.
    await call(LanceNamespaceService.method.describeNamespace, { id: ["hidden"] });
    assert.equal(asked.filter((each) => each === "DescribeNamespace Database hidden").length, 2);
  });

  it("about a job is one about its table; a hidden job is a missing one", async () => {
    const databases = new Map([[undefined, databaseOf({ seen: "a$t", hidden: "b$t" })]]);
    const isAllowed = ({ operation, object: { id } }: Access) => id[0] !== "b" && operation !== "CancelJob";
    const { call } = callerOf(databases, isAllowed);
    const { jobs } = (await call(listJobs, {})) as Message & { jobs: { jobId: string }[] };
    assert.deepEqual(
      jobs.map(({ jobId }) => jobId),
      ["seen"],
    );
    assert.equal(((await call(describeJob, { jobId: "seen" })) as { jobId?: string }).jobId, "seen");
    assert.match(String(await call(cancelJob, { jobId: "seen" })), /^PermissionDenied: CancelJob .* on a\$t/);
    for (const jobId of ["hidden", "none"]) {
      assert.equal(await call(describeJob, { jobId }), `TransactionNotFound: there is no job "${jobId}"`);
    }
  });

  it("about a job is one about the present name of its table, which an upstream may change", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    onTestFinished(() => void vi.useRealTimers());
    const jobs = { job: "a$t" };
    const { call } = callerOf(
      new Map([[undefined, databaseOf(jobs)]]),
      ({ object: { id } }) => id[0] !== "b",
    );
    assert.equal(((await call(describeJob, { jobId: "job" })) as { jobId?: string }).jobId, "job");
    jobs.job = "b$t";
    vi.advanceTimersByTime(10_000);
    assert.match(String(await call(cancelJob, { jobId: "job" })), /^TransactionNotFound/);
  });

  it("asks an upstream about an unknown job, and not for all jobs", async () => {
    const { backend, limits } = databaseOf({ known: "a$t" });
    const unknown = new LanceError("TransactionNotFound", "it is missing");
    for (const refusal of [
      unknown,
      new LanceError("TableNotFound", "404"),
      new LanceError("Throttling", "wait"),
    ]) {
      let lists = 0;
      const extensions: Backend["extensions"] = {
        ...backend.extensions,
        describeJob: async ({ jobId }) => {
          if (jobId !== "known") throw refusal;
          return create(DescribeJobResponseSchema, { jobId });
        },
        listJobs: (...args) => {
          lists += 1;
          return backend.extensions?.listJobs?.(...args) as never;
        },
      };
      const { call } = callerOf(
        new Map([[undefined, { backend: { ...backend, extensions }, limits }]]),
        () => true,
      );
      const isPassing = refusal.entry.name === "Throttling";
      const expected = isPassing ? "Throttling: wait" : 'TransactionNotFound: there is no job "none"';
      assert.equal(await call(cancelJob, { jobId: "none" }), expected);
      assert.equal(lists, 0);
      assert.equal(typeof (await call(cancelJob, { jobId: "known" })), "object");
      assert.equal(lists, 1);
    }
  });

  it("asks for all jobs where an upstream cannot describe one", async () => {
    const { backend, limits } = databaseOf({ known: "a$t" });
    const { describeJob: _, ...extensions } = backend.extensions ?? {};
    const { call } = callerOf(
      new Map([[undefined, { backend: { ...backend, extensions }, limits }]]),
      () => true,
    );
    assert.equal(typeof (await call(cancelJob, { jobId: "known" })), "object");
    assert.match(String(await call(cancelJob, { jobId: "none" })), /^TransactionNotFound/);
  });

  it("asks a backend that knows the table of a job, and not for all jobs", async () => {
    const { backend, limits } = databaseOf();
    const tableOfJob = async (jobId: string) => (jobId === "known" ? ["a", "t"] : undefined);
    const listing = async () => assert.fail("all jobs are listed");
    const extensions = { ...backend.extensions, listJobs: listing };
    const knowing = { backend: { ...backend, tableOfJob, extensions }, limits };
    const { call } = callerOf(new Map([[undefined, knowing]]), ({ object: { id } }) => id[0] === "a");
    assert.equal(((await call(describeJob, { jobId: "known" })) as { jobId?: string }).jobId, "known");
    assert.match(String(await call(describeJob, { jobId: "none" })), /^TransactionNotFound/);
  });

  it("is about the tables of a commit, too, whose answer has an upstream's credentials for them", async () => {
    const { batchCommitTables } = LanceNamespaceService.method;
    const storageOptions = { aws_secret_access_key: "secret" };
    const backend: Backend = {
      ...databaseOf().backend,
      handsOut: "read",
      operations: {
        batchCommitTables: async ({ operations }) =>
          create(batchCommitTables.output, {
            results: operations.map(() => ({
              result: { case: "declareTable" as const, value: { storageOptions } },
            })),
          }),
      },
    };
    const mayRead = ({ action, object: { id } }: Access) => action !== "read" || id[0] !== "hidden";
    const { call } = callerOf(new Map([[undefined, { ...databaseOf(), backend }]]), mayRead);
    const vended = async (...names: string[]) => {
      const operations = names.map((name) => ({
        operation: { case: "declareTable", value: { id: [name] } },
      }));
      const answer = await call(batchCommitTables, { operations });
      return (answer as BatchCommitTablesResponse).results.map(
        ({ result }) => result.case === "declareTable" && Object.keys(result.value.storageOptions),
      );
    };
    assert.deepEqual(await vended("seen"), [["aws_secret_access_key"]]);
    assert.deepEqual(await vended("hidden"), [[]]);
    assert.deepEqual(await vended("seen", "hidden"), [[], []]);
  });

  it("refuses a view whose sources the backend cannot tell", async () => {
    const { call } = callerOf(new Map([[undefined, databaseOf()]]), () => true);
    const outcome = await call(createMaterializedView, { id: ["v"], sourceQuery: "SELECT * FROM t" });
    assert.match(String(outcome), /^PermissionDenied: .*cannot tell which tables/);
  });

  it("is one about each of very many objects in a namespace below the one that is dropped", async () => {
    const { backend, limits } = databaseOf();
    const inner = Array.from({ length: 150_000 }, (_, i) => `t${i}`);
    const listing = ({ id }: Message & { id: string[] }) => ({
      tables: id.length === 2 ? inner : [],
      namespaces: id.length === 1 ? ["inner"] : [],
    });
    const operations = {
      ...backend.operations,
      listTables: async (request: ListTablesRequest) => create(ListTablesResponseSchema, listing(request)),
      listNamespaces: async (request: ListNamespacesRequest) =>
        create(ListNamespacesResponseSchema, listing(request)),
      dropNamespace: async () => create(DropNamespaceResponseSchema),
    };
    const databases = new Map([[undefined, { backend: { ...backend, operations }, limits }]]);
    const behavior = DropNamespaceBehavior.CASCADE;
    for (const last of [inner.at(-1), undefined]) {
      const { call } = callerOf(databases, ({ object }) => last === undefined || object.id[2] !== last);
      const outcome = await call(dropNamespace, { id: ["a"], behavior });
      if (last === undefined) assert.equal(typeof outcome, "object");
      else assert.match(String(outcome), /^PermissionDenied: DropNamespace .* on a is/);
    }
  });

  it("covers what a cascade removes where a list of views, or of inner namespaces, says that the namespace is missing", async () => {
    const { backend, limits } = databaseOf();
    const missing = async () => {
      throw new LanceError("NamespaceNotFound", "there is no such route");
    };
    const tables = ["mine", "others"];
    for (const broken of [{ listViews: missing }, { listNamespaces: missing }]) {
      const operations = {
        ...backend.operations,
        listTables: async () => create(ListTablesResponseSchema, { tables }),
        listNamespaces: async () => create(ListNamespacesResponseSchema),
        dropNamespace: async () => create(DropNamespaceResponseSchema),
        ...broken,
      };
      const databases = new Map([[undefined, { backend: { ...backend, operations }, limits }]]);
      const { call } = callerOf(databases, ({ object }) => object.id[1] !== "others");
      const outcome = await call(dropNamespace, { id: ["a"], behavior: DropNamespaceBehavior.CASCADE });
      assert.match(String(outcome), /^PermissionDenied: DropNamespace .* on a is/);
    }
  });

  it("ends where a backend lists the same page, or the same namespaces, for ever", async () => {
    const { backend, limits } = databaseOf();
    for (const endless of [{ tables: ["t"], pageToken: "next" }, { namespaces: ["n", "m"] }]) {
      const operations = {
        ...backend.operations,
        listTables: async () => create(ListTablesResponseSchema, { tables: [], ...endless }),
        listNamespaces: async () => create(ListNamespacesResponseSchema, { namespaces: [], ...endless }),
      };
      const databases = new Map([[undefined, { backend: { ...backend, operations }, limits }]]);
      const { call } = callerOf(databases, () => true);
      const outcome = await call(dropNamespace, { id: ["a"], behavior: DropNamespaceBehavior.CASCADE });
      assert.match(String(outcome), /^ServiceUnavailable/);
    }
  });

  it("can come later", async () => {
    const databases = new Map([[undefined, databaseOf()]]);
    const { call } = callerOf(databases, async ({ object }) => object.id[0] === "a");
    assert.equal(typeof (await call(describeTable, { id: ["a"] })), "object");
    assert.match(String(await call(describeTable, { id: ["b"] })), /^PermissionDenied/);
  });
});

const properties = { owner: "somebody else" };

/** A catalog in which everything exists already. */
const backend: Backend = {
  name: "memory",
  operations: {
    createNamespace: async () => create(CreateNamespaceResponseSchema, { properties }),
    createTable: async () => create(CreateTableResponseSchema, { properties }),
  },
  ready: async () => true,
  close: async () => {},
};

/** A caller who may create everything, and describe it if `mayDescribe` says so. */
function callerWho(mayDescribe: boolean) {
  return createCaller({
    backend,
    limits: { maxUploadBytes: 1_000 },
    authenticator: takeAllFor(ann),
    authorizer: { allows: (_, { action }) => mayDescribe || action !== "describe", close() {} },
  });
}

test("a creation shows the properties of what existed to those who may describe it", async () => {
  for (const [mayDescribe, shown] of [
    [true, properties],
    [false, { mine: "yes" }],
  ] as const) {
    const caller = callerWho(mayDescribe);
    const request = { id: ["n"], properties: { mine: "yes" } };
    const namespace = await caller.createNamespace({ ...request, mode: CreateNamespaceMode.EXIST_OK });
    assert.deepEqual(namespace.properties, shown);
    const body = new Uint8Array();
    const table = await caller.createTable({ ...request, mode: CreateTableMode.EXIST_OK }, body);
    assert.deepEqual(table.properties, shown);
  }
});
