import assert from "node:assert/strict";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Table, tableFromIPC, tableToIPC, vectorFromArray } from "apache-arrow";
import { test } from "vitest";
import { failsWith, openClient, temporaryDirectory } from "../../../test/fixtures/dir/directory-backend.ts";
import { idsOf, rows } from "../../../test/fixtures/dir/rows.ts";
import { CreateTableMode, InsertMode } from "../../gen/lance/namespace/v1/data_pb.ts";
import {
  CreateNamespaceMode,
  DropNamespaceBehavior,
  DropNamespaceMode,
} from "../../gen/lance/namespace/v1/namespace_pb.ts";

test("creates, describes, lists and drops namespaces", async (t) => {
  const client = await openClient(t, await temporaryDirectory(t));
  assert.deepEqual((await client.call("listNamespaces", "$")).namespaces, []);
  await client.call("createNamespace", "a", { properties: { owner: "me" } });
  await client.call("createNamespace", "a$b");
  await assert.rejects(client.call("createNamespace", "a"), failsWith("NamespaceAlreadyExists"));
  await assert.rejects(client.call("createNamespace", "$"), failsWith("NamespaceAlreadyExists"));
  await assert.rejects(client.call("createNamespace", "x$b"), failsWith("NamespaceNotFound"));
  await assert.rejects(client.call("createNamespace", "a/b"), failsWith("InvalidInput"));
  const kept = await client.call("createNamespace", "a", { mode: CreateNamespaceMode.EXIST_OK });
  assert.deepEqual({ ...kept.properties }, { owner: "me" });
  assert.deepEqual({ ...(await client.call("describeNamespace", "a")).properties }, { owner: "me" });
  assert.deepEqual((await client.call("listNamespaces", "a")).namespaces, ["b"]);

  await client.call("declareTable", "a$b$t");
  await assert.rejects(client.call("dropNamespace", "a"), failsWith("NamespaceNotEmpty"));
  await client.call("createNamespace", "a", { mode: CreateNamespaceMode.OVERWRITE });
  assert.deepEqual((await client.call("listNamespaces", "a")).namespaces, []);
  await client.call("createNamespace", "a$c");
  await client.call("dropNamespace", "a", { behavior: DropNamespaceBehavior.CASCADE });
  await assert.rejects(client.call("namespaceExists", "a"), failsWith("NamespaceNotFound"));
  await assert.rejects(client.call("dropNamespace", "a"), failsWith("NamespaceNotFound"));
  await client.call("dropNamespace", "a", { mode: DropNamespaceMode.SKIP });
  await assert.rejects(client.call("dropNamespace", "$"), failsWith("InvalidInput"));
  await assert.rejects(client.call("listTables", "a"), failsWith("NamespaceNotFound"));
});

test("creates, fills, reads and drops a table", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  await assert.rejects(client.upload("createTable", "no$t", {}, rows([1])), failsWith("NamespaceNotFound"));
  const created = await client.upload("createTable", "t", { properties: { a: "1" } }, rows([1, 2]));
  assert.deepEqual([created.location, created.version], [join(root, "data", "t.lance"), 1n]);
  await assert.rejects(client.upload("createTable", "t", {}, rows([1])), failsWith("TableAlreadyExists"));
  const kept = await client.upload("createTable", "t", { mode: CreateTableMode.EXIST_OK }, rows([9]));
  assert.equal(kept.version, undefined);

  const inserted = await client.upload("insertIntoTable", "t", {}, rows([3, 4, 5]));
  assert.deepEqual([inserted.numInsertedRows, inserted.version], [3n, 2n]);
  assert.equal((await client.call("countTableRows", "t")).count, 5n);
  assert.equal((await client.call("countTableRows", "t", { version: 1n })).count, 2n);
  assert.equal((await client.call("countTableRows", "t", { predicate: "id > 3" })).count, 2n);
  await assert.rejects(
    client.call("countTableRows", "t", { version: 9n }),
    failsWith("TableVersionNotFound"),
  );
  await assert.rejects(
    client.call("countTableRows", "t", { predicate: "id >> " }),
    failsWith("InvalidInput"),
  );
  await assert.rejects(
    client.call("countTableRows", "t", { predicate: "no > 1" }),
    failsWith("TableColumnNotFound"),
  );
  await assert.rejects(client.call("countTableRows", "t", { branch: "b" }), failsWith("TableBranchNotFound"));
  await client.call("tableExists", "t", { version: 2n });
  await assert.rejects(client.call("tableExists", "t", { version: 3n }), failsWith("TableVersionNotFound"));

  const other = tableToIPC(new Table({ id: vectorFromArray([1.7]) }), "stream");
  await assert.rejects(
    client.upload("insertIntoTable", "t", {}, other),
    failsWith("TableSchemaValidationError"),
  );
  await assert.rejects(
    client.upload("insertIntoTable", "t", {}, Buffer.from("no arrow")),
    failsWith("InvalidInput"),
  );
  await client.upload("insertIntoTable", "t", { mode: InsertMode.OVERWRITE }, rows([7]));
  assert.deepEqual(idsOf(await client.query("t")), [7]);
  await client.upload("createTable", "t", { mode: CreateTableMode.OVERWRITE }, rows([]));
  assert.deepEqual({ ...(await client.call("describeTable", "t")).properties }, {});
  assert.deepEqual(idsOf(await client.query("t")), []);

  const dropped = await client.call("dropTable", "t");
  assert.deepEqual([dropped.id, dropped.location], [["t"], join(root, "data", "t.lance")]);
  const left = await readdir(join(root, "data"));
  assert.deepEqual(
    left.filter((name) => name !== ".intents"),
    ["__manifest"],
  );
  await assert.rejects(client.call("dropTable", "t"), failsWith("TableNotFound"));
  await client.upload("createTable", "t", {}, rows([1]));
  assert.deepEqual(idsOf(await client.query("t")), [1]);
});

test("a failed upload leaves no table behind", async (t) => {
  const client = await openClient(t, await temporaryDirectory(t));
  const cut = rows([1, 2, 3]).subarray(0, -60);
  await assert.rejects(client.upload("createTable", "t", {}, cut), failsWith("InvalidInput"));
  await assert.rejects(client.call("describeTable", "t"), failsWith("TableNotFound"));
});

test("queries select, filter, search and page", async (t) => {
  const client = await openClient(t, await temporaryDirectory(t));
  await client.upload("createTable", "t", {}, rows([5, 1, 4, 2, 3]));
  assert.deepEqual(idsOf(await client.query("t")), [5, 1, 4, 2, 3]);
  assert.deepEqual(idsOf(await client.query("t", { filter: "id > 2" })), [5, 4, 3]);
  assert.deepEqual(idsOf(await client.query("t", { k: 2n, offset: 1n })), [1, 4]);
  assert.deepEqual(idsOf(await client.query("t", { k: 2n ** 63n - 1n })), [5, 1, 4, 2, 3]);
  assert.deepEqual(idsOf(await client.query("t", { filter: "id > 99" })), []);
  assert.deepEqual(idsOf(await client.query("t", { orderBy: [{ columnName: "id" }] })), [1, 2, 3, 4, 5]);

  const columns = (ipc: Uint8Array) => tableFromIPC(ipc).schema.fields.map(({ name }) => name);
  const named = await client.query("t", { columns: { columnNames: ["name"] }, withRowId: true });
  assert.deepEqual(columns(named), ["name", "_rowid"]);
  const renamed = await client.query("t", { columns: { columnAliases: { double: "id * 2" } } });
  assert.deepEqual([...(tableFromIPC(renamed).getChild("double") ?? [])].map(Number), [10, 2, 8, 4, 6]);

  const near = { vector: { singleVector: [4, 4] }, k: 2n };
  assert.deepEqual(idsOf(await client.query("t", near)).slice(0, 1), [4]);
  assert.deepEqual(idsOf(await client.query("t", { ...near, filter: "id < 3" })), [2, 1]);
  assert.deepEqual(idsOf(await client.query("t", { ...near, prefilter: false, filter: "id < 3" })), []);
  assert.deepEqual(idsOf(await client.query("t", { ...near, upperBound: 1 })), [4]);
  await assert.rejects(client.query("t", { ...near, distanceType: "far" }), failsWith("InvalidInput"));
  await assert.rejects(client.query("t", { vector: { singleVector: [1] } }), failsWith("InvalidInput"));
  await assert.rejects(client.query("t", { ...near, vectorColumn: "no" }), failsWith("TableColumnNotFound"));
  await assert.rejects(
    client.query("t", { columns: { columnNames: ["no"] } }),
    failsWith("TableColumnNotFound"),
  );
  await assert.rejects(client.query("none"), failsWith("TableNotFound"));
});

test("lists a declared table without data, and makes it a real table with any write", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  const { location = "" } = await client.call("declareTable", "t", { properties: { a: "1" } });
  assert.deepEqual(await readdir(location), [".lance-reserved"]);
  await assert.rejects(client.call("declareTable", "t"), failsWith("TableAlreadyExists"));
  const described = await client.call("describeTable", "t", { loadDetailedMetadata: true });
  assert.deepEqual([described.isOnlyDeclared, described.version], [true, undefined]);
  await assert.rejects(client.call("countTableRows", "t"), failsWith("TableNotFound"));
  assert.deepEqual((await client.call("listTables", "$", { includeDeclared: false })).tables, []);
  assert.equal((await client.upload("insertIntoTable", "t", {}, rows([1]))).version, 1n);

  await client.call("createNamespace", "n");
  const nested = await client.call("declareTable", "n$t", { location: "some/where" });
  assert.equal(nested.location, join(root, "data", "some/where"));
  assert.equal((await client.upload("createTable", "n$t", {}, rows([1, 2]))).location, nested.location);
  const full = await client.call("describeTable", "n$t", { loadDetailedMetadata: true, withTableUri: true });
  assert.deepEqual([full.table, full.namespace, full.version, full.isOnlyDeclared], ["t", ["n"], 1n, false]);
  assert.deepEqual(
    full.schema?.fields.map(({ name }) => name),
    ["id", "name", "vector"],
  );
  assert.deepEqual([full.stats?.numFragments, full.stats?.numDeletedRows], [1n, 0n]);
  assert.equal(full.tableUri, `file://${nested.location}`);
  await assert.rejects(client.call("declareTable", "n"), failsWith("TableAlreadyExists"));
});

test("lists every table exactly once with any page size", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  const names = Array.from({ length: 23 }, (_, i) => `t${i}`).sort();
  await Promise.all(names.filter((_, i) => i % 3 !== 0).map((name) => client.call("declareTable", name)));
  // Tables of the first version of the format, which have no row in the manifest.
  for (const name of names.filter((_, i) => i % 3 === 0)) {
    await mkdir(join(root, "data", `${name}.lance`));
    await writeFile(join(root, "data", `${name}.lance`, ".lance-reserved"), "reserved");
  }
  for (const limit of [1, 2, 7, 22, 23, 24, 0, -1]) {
    const seen: string[] = [];
    let pageToken: string | undefined;
    do {
      const page = await client.call("listTables", "$", { limit, ...(pageToken && { pageToken }) });
      assert.ok(limit <= 0 || page.tables.length <= limit);
      seen.push(...page.tables);
      pageToken = page.pageToken;
    } while (pageToken !== undefined);
    assert.deepEqual(seen, names);
  }
  assert.deepEqual((await client.call("listAllTables", "$", { limit: 3 })).tables, names.slice(0, 3));
});
