import assert from "node:assert/strict";
import { create, fromJson, type JsonObject } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { Int32, Table, tableToIPC, vectorFromArray } from "apache-arrow";
import { test } from "vitest";
import {
  failsWith,
  openClient,
  silent,
  temporaryDirectory,
} from "../../../../../test/fixtures/dir/directory-backend.ts";
import { engineWith } from "../../../../../test/fixtures/dir/engine.ts";
import { idsOf, rows } from "../../../../../test/fixtures/dir/rows.ts";
import { beginCall } from "../../../../../test/support/caller.ts";
import { streamOf } from "../../../../../test/support/rows.ts";
import { CreateTableMode, InsertMode } from "../../../../gen/lance/namespace/v1/data_pb.ts";
import { LanceNamespaceService } from "../../../../gen/lance/namespace/v1/service_pb.ts";
import { openDirectory } from "../../open-directory.ts";
import { createColumnOperations } from "./columns.ts";

const changes = [
  ["dropped", "alterTableDropColumns", { columns: ["name"] }, "dropColumns"],
  ["renamed", "alterTableAlterColumns", { alterations: [{ path: "name", rename: "n" }] }, "alterColumns"],
  ["added", "alterTableAddColumns", { newColumns: [{ name: "n", expression: "id + 1" }] }, "addColumns"],
] as const;

for (const [what, operation, init, engineMethod] of changes) {
  test(`metadata that another gateway sets while a column is ${what} stays`, async (t) => {
    const root = await temporaryDirectory(t);
    const client = await openClient(t, root);
    await client.upload("createTable", "t", {}, rows([1]));
    const { context, close } = await openDirectory({ root, log: silent });
    t.onTestFinished(close);
    let tries = 0;
    const setMetadata = async () => {
      if (++tries > 1) return;
      await client.call("updateTableSchemaMetadata", "t", { metadata: { a: "b" } });
      const updates = [{ path: "id", metadata: { unit: { value: "m" } } }];
      await client.call("updateFieldMetadata", "t", { updates });
    };
    const engine = engineWith(context.engine, engineMethod, setMetadata);
    const columns = createColumnOperations({ ...context, engine });
    const method = LanceNamespaceService.method[operation];
    const work = columns[operation] as (request: unknown, call: unknown) => Promise<unknown>;
    await work(create(method.input, init as never), beginCall(method, { id: ["t"] }));
    const { schema } = await client.call("describeTable", "t", { loadDetailedMetadata: true });
    assert.equal(schema?.metadata["a"], "b");
    assert.deepEqual(schema?.fields[0]?.metadata, { unit: "m" });
  });
}

test("a column is changed, or gets metadata, once in a call, however its path is written", async (t) => {
  const client = await openClient(t, await temporaryDirectory(t));
  await client.upload("createTable", "t", {}, rows([1]));
  const alterations = [
    { path: "name", rename: "first" },
    { path: "`name`", rename: "second" },
  ];
  const altering = client.call("alterTableAlterColumns", "t", { alterations });
  await assert.rejects(altering, failsWith("InvalidInput"));
  const metadata: Record<string, { value: string }> = { a: { value: "1" } };
  const updates = ["id", "`id`"].map((path) => ({ path, metadata, replace: true }));
  const updating = client.call("updateFieldMetadata", "t", { updates });
  await assert.rejects(updating, failsWith("InvalidInput"));
  const { version, schema } = await client.call("describeTable", "t", { loadDetailedMetadata: true });
  assert.equal(version, 1n);
  assert.deepEqual(schema?.fields[0]?.metadata, {});
  assert.equal(schema?.fields[1]?.name, "name");
});

test("a type that says more than it can mean is refused and changes nothing", async (t) => {
  const client = await openClient(t, await temporaryDirectory(t));
  await client.upload("createTable", "t", {}, rows([1]));
  const item = { name: "item", type: { type: "float64" } };
  const alter = (path: string, dataType: JsonObject) =>
    client.call("alterTableAlterColumns", "t", {
      alterations: [{ path, dataType: fromJson(ValueSchema, dataType) }],
    });
  for (const [path, dataType] of [
    ["id", { type: "int64", length: 9 }],
    ["id", { type: "int64", length: -1 }],
    ["id", { type: "int64", fields: [item] }],
    ["id", { type: "int64", unit: "ns" }],
    ["vector", { type: "fixed_size_list:float64:2", length: 3 }],
    ["vector", { type: "fixed_size_list:float16:2", fields: [item] }],
    ["vector", { type: "fixed_size_list", length: 2, fields: [item, item] }],
  ] as const)
    await assert.rejects(alter(path, dataType as never), failsWith("InvalidInput"), JSON.stringify(dataType));
  assert.equal((await client.call("describeTable", "t", { loadDetailedMetadata: true })).version, 1n);
  await alter("id", { type: "int64", logical_type: "int64", length: 0, fields: [] });
  await alter("vector", { type: "fixed_size_list:float64:2", length: 2 });
  const { schema } = await client.call("describeTable", "t", { loadDetailedMetadata: true });
  assert.deepEqual(
    schema?.fields.map(({ type }) => type?.type),
    ["int64", "utf8", "fixed_size_list"],
  );
});

test("a field of a struct does not get the name of another one, but two may change names", async (t) => {
  const client = await openClient(t, await temporaryDirectory(t));
  await client.upload("createTable", "t", {}, rows([1]));
  const expression = "named_struct('a', id, 'b', name)";
  await client.call("alterTableAddColumns", "t", { newColumns: [{ name: "s", expression }] });
  const rename = (...alterations: { path: string; rename: string }[]) =>
    client.call("alterTableAlterColumns", "t", { alterations });
  await assert.rejects(rename({ path: "s.a", rename: "b" }), failsWith("TableSchemaValidationError"));
  const both = [
    { path: "s.a", rename: "c" },
    { path: "s.`b`", rename: "c" },
  ];
  await assert.rejects(rename(...both), failsWith("TableSchemaValidationError"));
  await rename({ path: "s.a", rename: "b" }, { path: "s.b", rename: "a" });
  const { schema } = await client.call("describeTable", "t", { loadDetailedMetadata: true });
  assert.deepEqual(
    schema?.fields.at(-1)?.type?.fields.map(({ name }) => name),
    ["b", "a"],
  );
  assert.deepEqual(idsOf(await client.query("t")), [1]);
});

test("a column does not get the name of one that the engine adds, over which all queries would fail", async (t) => {
  const client = await openClient(t, await temporaryDirectory(t));
  await client.upload("createTable", "t", {}, rows([1]));
  for (const name of ["_rowid", "_rowaddr", "_rowoffset"]) {
    const newColumns = [{ name, expression: "id" }];
    const adding = client.call("alterTableAddColumns", "t", { newColumns });
    await assert.rejects(adding, failsWith("InvalidInput"));
    const alterations = [{ path: "id", rename: name }];
    const renaming = client.call("alterTableAlterColumns", "t", { alterations });
    await assert.rejects(renaming, failsWith("InvalidInput"));
  }
  assert.deepEqual(idsOf(await client.query("t")), [1]);
});

test("no column has a backtick in its name, by which no query could read it", async (t) => {
  const client = await openClient(t, await temporaryDirectory(t));
  const refused = failsWith("InvalidInput");
  const upload = () => streamOf({ "ti`ck": { type: new Int32(), values: [1] } });
  await assert.rejects(client.upload("createTable", "t", {}, upload()), refused);
  await client.upload("createTable", "t", {}, rows([1]));
  const overwrite = { mode: CreateTableMode.OVERWRITE };
  await assert.rejects(client.upload("createTable", "t", overwrite, upload()), refused);
  await assert.rejects(
    client.upload("insertIntoTable", "t", { mode: InsertMode.OVERWRITE }, upload()),
    refused,
  );
  const newColumns = [{ name: "ti`ck", expression: "id" }];
  await assert.rejects(client.call("alterTableAddColumns", "t", { newColumns }), refused);
  const alterations = [{ path: "id", rename: "ti`ck" }];
  await assert.rejects(client.call("alterTableAlterColumns", "t", { alterations }), refused);
  assert.deepEqual(idsOf(await client.query("t")), [1]);
});

test("a column whose name is not valid SQL gets another type, with its path in backticks or not", async (t) => {
  const client = await openClient(t, await temporaryDirectory(t));
  const names = ["it's", "a--b"];
  const columns = names.map((name) => [name, vectorFromArray([1], new Int32())]);
  await client.upload("createTable", "t", {}, tableToIPC(new Table(Object.fromEntries(columns)), "stream"));
  for (const type of ["int64", "int32"]) {
    const dataType = create(ValueSchema, { kind: { case: "stringValue", value: type } });
    const alterations = names.map((name) => ({ path: type === "int64" ? name : `\`${name}\``, dataType }));
    await client.call("alterTableAlterColumns", "t", { alterations });
  }
  const { schema } = await client.call("describeTable", "t", { loadDetailedMetadata: true });
  assert.deepEqual(
    schema?.fields.map((field) => field.type?.type),
    ["int32", "int32"],
  );
});

test("a change of columns right after a change of rows is seen by what follows", async (t) => {
  const client = await openClient(t, await temporaryDirectory(t));
  await client.upload("createTable", "t", {}, rows([1]));
  const names = async () => {
    const { schema } = await client.call("describeTable", "t", { loadDetailedMetadata: true });
    return schema?.fields.map(({ name }) => name);
  };
  await client.upload("insertIntoTable", "t", {}, rows([2]));
  await client.upload("insertIntoTable", "t", {}, rows([3]));
  const newColumns = [{ name: "n", expression: "id + 1" }];
  await client.call("alterTableAddColumns", "t", { newColumns });
  assert.deepEqual(await names(), ["id", "name", "vector", "n"]);
  assert.equal(
    await client.call("countTableRows", "t", { predicate: "n > 2" }).then(({ count }) => count),
    2n,
  );
  await client.call("updateTable", "t", { updates: [{ column: "n", expression: "7" }] });
  await client.call("alterTableDropColumns", "t", { columns: ["n"] });
  assert.deepEqual(await names(), ["id", "name", "vector"]);
  await client.upload("insertIntoTable", "t", {}, rows([4]));
  assert.equal(await client.call("countTableRows", "t").then(({ count }) => count), 4n);
});
