import assert from "node:assert/strict";
import { create, type DescMethod, type Message } from "@bufbuild/protobuf";
import { describe, it } from "vitest";
import { LanceDbService } from "../../gen/lance/gateway/v1/lancedb_pb.ts";
import { CreateNamespaceMode } from "../../gen/lance/namespace/v1/namespace_pb.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import type { Identifier } from "../identifier.ts";
import { OPERATIONS } from "./operations.ts";
import { leadsOf, reachOf } from "./reach.ts";
import type { Lookups, Touch } from "./touch.ts";

const { method } = LanceNamespaceService;

const LOOKUPS: Lookups = {
  tableOfJob: async (jobId) => (jobId === "known" ? ["a", "t"] : undefined),
  async contentsOf(id) {
    if (id.includes("new")) return [];
    return [{ operation: "dropTable", kind: "Table", id: [...id, "t"], unnamed: true }];
  },
  sourcesOf: ({ sourceQuery }) => [sourceQuery.split(".")],
  rootTableAt: (location) => (location.startsWith("people.lance") ? ["people"] : undefined),
  tableAt: async (place) => (place === "nowhere" ? undefined : place.split("/")),
};

/** Returns what a request reaches, as texts. */
async function reached(
  { localName, input }: DescMethod,
  init: object,
  id: Identifier = [],
): Promise<string[]> {
  const request = create(input, init as never);
  const { own, more, find } = await reachOf(localName, request, id, LOOKUPS);
  const touches: readonly Touch[] = [...own, ...more(), ...((await find?.()) ?? [])];
  return touches.map(({ operation, kind, id: path }) => `${operation} ${kind} ${path.join("/")}`.trim());
}

/** Returns the names of the fields of a message, and of the messages in it, that can name an object. */
function namingFields({ input }: DescMethod): string[] {
  const seen = new Set<string>();
  const visit = (type: DescMethod["input"]): string[] => {
    if (seen.has(type.typeName)) return [];
    seen.add(type.typeName);
    return type.fields.flatMap((field) => [
      ...(NAMING.test(field.name) && (field.name !== "id" || type !== input) ? [field.name] : []),
      ...(field.message === undefined || field.fieldKind === "map" ? [] : visit(field.message)),
    ]);
  };
  return visit(input);
}

const NAMING = /^(new|source)_(table|namespace|query)|(^|_)(id|table|namespace|tables)$/;

describe("the objects of operations", () => {
  it("are the table of the root whose place a declaration takes, also in a commit", async () => {
    const { batchCommitTables, declareTable } = method;
    const [own, taken] = ["declareTable Table own/x", "declareTable Table people"];
    const place = { location: "people.lance/x" };
    assert.deepEqual(await reached(declareTable, place, ["own", "x"]), [own, taken]);
    assert.deepEqual(await reached(declareTable, { location: "other.lance" }, ["own", "x"]), [own]);
    assert.deepEqual(await reached(declareTable, place, ["people"]), [taken]);
    const operation = { case: "declareTable", value: { id: ["own", "x"], ...place } };
    assert.deepEqual(await reached(batchCommitTables, { operations: [{ operation }] }), [own, taken]);
  });

  it("are the table of the root whose place a registration takes", async () => {
    const { registerTable } = method;
    const own = "registerTable Table own/x";
    const taking = await reached(registerTable, { location: "people.lance" }, ["own", "x"]);
    assert.deepEqual(taking, [own, "renameTable Table people"]);
    assert.deepEqual(await reached(registerTable, { location: "other.lance" }, ["own", "x"]), [own]);
    const same = await reached(registerTable, { location: "people.lance" }, ["people"]);
    assert.deepEqual(same, ["registerTable Table people"]);
  });

  it("are the table that loses its name to a registration, also by a mode that only a newer upstream knows", async () => {
    const own = "registerTable Table a/t";
    for (const mode of [0, 1])
      assert.deepEqual(await reached(method.registerTable, { mode }, ["a", "t"]), [own]);
    for (const mode of [2, 99])
      assert.deepEqual(await reached(method.registerTable, { mode }, ["a", "t"]), [
        own,
        "deregisterTable Table a/t",
      ]);
  });

  it("are everything in a namespace for modes that only a newer upstream knows", async () => {
    const everything = ["dropTable Table a/t"];
    const dropped = await reached(method.dropNamespace, { behavior: 99 }, ["a"]);
    assert.deepEqual(dropped, ["dropNamespace Namespace a", ...everything]);
    const replaced = await reached(method.createNamespace, { mode: 99 }, ["a"]);
    assert.deepEqual(replaced, ["createNamespace Namespace a", "dropNamespace Namespace a", ...everything]);
    for (const behavior of [0, 1])
      assert.deepEqual(await reached(method.dropNamespace, { behavior }, ["a"]), [
        "dropNamespace Namespace a",
      ]);
    for (const mode of [0, 1, 2])
      assert.deepEqual(await reached(method.createNamespace, { mode }, ["a"]), [
        "createNamespace Namespace a",
      ]);
  });

  it("are more than the id of the call for every request that can name more", () => {
    // Fields that name a part of the object, and not another object.
    const own = new Set(["upload_id", "upload_part_id", "with_row_id", "row_id"]);
    // Where names in a query begin: its tables are read by calls of their own.
    own.add("default_namespace");
    // It chooses among the records of the table.
    own.add("ListFunctionErrors.job_id");
    for (const facts of Object.values(OPERATIONS)) {
      const isOwn = (name: string) => own.has(name) || own.has(`${facts.method.name}.${name}`);
      const naming = namingFields(facts.method).filter((name) => !isOwn(name));
      const leads = leadsOf(facts);
      if (naming.length > 0)
        assert.ok(leads.own ?? leads.more ?? leads.find, `${facts.method.name}: ${naming.join(", ")}`);
    }
  });

  it("are the id of the call, and the database for the root", async () => {
    assert.deepEqual(await reached(method.queryTable, {}, ["a", "t"]), ["queryTable Table a/t"]);
    assert.deepEqual(await reached(method.createNamespace, {}, ["a"]), ["createNamespace Namespace a"]);
    assert.deepEqual(await reached(method.describeNamespace, {}), ["describeNamespace Database"]);
    assert.deepEqual(await reached(method.listAllTables, {}, ["ignored"]), ["listAllTables Database"]);
  });

  it("of a list are the namespace and its existence", async () => {
    const touches = ["listTables Namespace a", "describeNamespace Namespace a"];
    assert.deepEqual(await reached(method.listTables, {}, ["a"]), touches);
    assert.deepEqual(await reached(method.listTables, {}), ["listTables Database"]);
  });

  it("of an explained query are the table of the call, and another one in the query", async () => {
    const { explainTableQueryPlan } = method;
    const own = "explainTableQueryPlan Table a/t";
    assert.deepEqual(await reached(explainTableQueryPlan, { query: {} }, ["a", "t"]), [own]);
    for (const query of [{ id: ["b", "u"] }, { identifier: "b.u", delimiter: "." }]) {
      const touches = [own, "explainTableQueryPlan Table b/u"];
      assert.deepEqual(await reached(explainTableQueryPlan, { query }, ["a", "t"]), touches);
    }
  });

  it("of a rename are the old name and the new one, in its own namespace or in another", async () => {
    const { renameTable } = method;
    const old = "renameTable Table a/t";
    assert.deepEqual(await reached(renameTable, { newTableName: "u" }, ["a", "t"]), [
      old,
      "renameTable Table a/u",
    ]);
    const moved = { newTableName: "u", newNamespaceId: ["b"] };
    assert.deepEqual(await reached(renameTable, moved, ["a", "t"]), [old, "renameTable Table b/u"]);
    await assert.rejects(reached(renameTable, { newTableName: "b$u" }, ["a", "t"]), /delimiter/);
  });

  it("of a commit are those of its entries, with their operations", async () => {
    const entry = (name: string, id: string[]) => ({ operation: { case: name, value: { id } } });
    const operations = [
      entry("declareTable", ["a", "n"]),
      entry("createTableVersion", ["a", "t"]),
      entry("deleteTableVersions", ["b", "t"]),
      entry("deregisterTable", ["c"]),
    ];
    assert.deepEqual(await reached(method.batchCommitTables, { operations }), [
      "declareTable Table a/n",
      "createTableVersion Table a/t",
      "batchDeleteTableVersions Table b/t",
      "deregisterTable Table c",
    ]);
    assert.deepEqual(await reached(method.batchCommitTables, {}), ["batchCommitTables Database"]);
    await assert.rejects(reached(method.batchCommitTables, { operations: [{}] }), /exactly one operation/);
    const entries = [{ id: ["a", "t"] }, { id: ["b", "t"] }];
    assert.deepEqual(await reached(method.batchCreateTableVersions, { entries }), [
      "createTableVersion Table a/t",
      "createTableVersion Table b/t",
    ]);
  });

  it("of a view are the view and the tables that its query reads", async () => {
    assert.deepEqual(await reached(method.createMaterializedView, { sourceQuery: "b.t" }, ["a", "v"]), [
      "createMaterializedView Table a/v",
      "queryTable Table b/t",
    ]);
  });

  it("of a clone are the new table and its source, or everything if the source is missing", async () => {
    const { cloneTable } = LanceDbService.method;
    assert.deepEqual(await reached(cloneTable, { sourceLocation: "b/t" }, ["a", "copy"]), [
      "cloneTable Table a/copy",
      "queryTable Table b/t",
    ]);
    assert.deepEqual(await reached(cloneTable, { sourceLocation: "nowhere" }, ["a", "copy"]), [
      "cloneTable Table a/copy",
      "queryTable Database",
    ]);
  });

  it("of a dropped namespace are its contents, if it takes them along", async () => {
    assert.deepEqual(await reached(method.dropNamespace, {}, ["a"]), ["dropNamespace Namespace a"]);
    assert.deepEqual(await reached(method.dropNamespace, { behavior: 2 }, ["a"]), [
      "dropNamespace Namespace a",
      "dropTable Table a/t",
    ]);
  });

  it("of a namespace that replaces another one are that one and its contents", async () => {
    assert.deepEqual(await reached(method.createNamespace, { mode: 2 }, ["a"]), [
      "createNamespace Namespace a",
    ]);
    const replacing = { mode: CreateNamespaceMode.OVERWRITE };
    assert.deepEqual(await reached(method.createNamespace, replacing, ["a"]), [
      "createNamespace Namespace a",
      "dropNamespace Namespace a",
      "dropTable Table a/t",
    ]);
    assert.deepEqual(await reached(method.createNamespace, replacing, ["new"]), [
      "createNamespace Namespace new",
      "dropNamespace Namespace new",
    ]);
  });

  it("of a transaction and of a job are their tables; a hidden job is a missing one", async () => {
    assert.deepEqual(await reached(method.alterTransaction, {}, ["a", "t", "7"]), [
      "alterTransaction Table a/t",
    ]);
    const { describeJob, cancelJob } = LanceDbService.method;
    assert.deepEqual(await reached(cancelJob, { jobId: "known" }), ["cancelJob Table a/t"]);
    await assert.rejects(reached(describeJob, { jobId: "x" }), /there is no job "x"/);
  });

  it("of an unknown method are the whole database", async () => {
    const { own } = await reachOf("eraseAll", {} as Message, ["a"], LOOKUPS);
    assert.deepEqual(own, [{ operation: "eraseAll", kind: "Database", id: [] }]);
  });
});
