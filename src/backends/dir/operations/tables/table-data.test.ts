import assert from "node:assert/strict";
import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { Int32, Table, tableToIPC, vectorFromArray } from "apache-arrow";
import { type TestContext, test } from "vitest";
import {
  failsWith,
  openClient,
  silent,
  type TestClient,
  temporaryDirectory,
} from "../../../../../test/fixtures/dir/directory-backend.ts";
import { withParts } from "../../../../../test/fixtures/dir/with-parts.ts";
import { beginCall } from "../../../../../test/support/caller.ts";
import { CreateTableMode } from "../../../../gen/lance/namespace/v1/data_pb.ts";
import { LanceNamespaceService } from "../../../../gen/lance/namespace/v1/service_pb.ts";
import { parseIdentifier } from "../../../../namespace/identifier.ts";
import type { Catalog } from "../../catalog/catalog.ts";
import { openDirectory } from "../../open-directory.ts";
import { createInsertOperations, createMultipartWrites } from "../rows/multipart.ts";

const rows = tableToIPC(new Table({ id: vectorFromArray([1, 2], new Int32()) }), "stream");

type Call = (client: TestClient, id: string) => Promise<unknown>;

/** Every operation that reads or writes a table's data. */
const CALLS: Readonly<Record<string, Call>> = {
  insert: (client, id) => client.upload("insertIntoTable", id, {}, rows),
  query: (client, id) => client.query(id),
  count: (client, id) => client.call("countTableRows", id),
  update: (client, id) =>
    client.call("updateTable", id, { updates: [{ column: "id", expression: "id + 1" }] }),
  delete: (client, id) => client.call("deleteFromTable", id, { predicate: "true" }),
  "describe with a check": (client, id) => client.call("describeTable", id, { checkDeclared: true }),
  "describe in detail": (client, id) => client.call("describeTable", id, { loadDetailedMetadata: true }),
  "list versions": (client, id) => client.call("listTableVersions", id),
  "list tags": (client, id) => client.call("listTableTags", id),
  "list branches": (client, id) => client.call("listTableBranches", id),
  "list indices": (client, id) => client.call("listTableIndices", id),
  statistics: (client, id) => client.call("getTableStats", id),
  merge: (client, id) =>
    client.upload("mergeInsertIntoTable", id, { on: ["id"], whenNotMatchedInsertAll: true }, rows),
  restore: (client, id) => client.call("restoreTable", id, { version: 1n }),
  "restore the newest": (client, id) => client.call("restoreTable", id, { version: 0n }),
  "describe a version": (client, id) => client.call("describeTableVersion", id, { version: 1n }),
  "describe the newest version": (client, id) => client.call("describeTableVersion", id),
  "create a tag": (client, id) => client.call("createTableTag", id, { tag: "a", version: 1n }),
  "create a branch": (client, id) => client.call("createTableBranch", id, { name: "b" }),
  "add a column": (client, id) =>
    client.call("alterTableAddColumns", id, { newColumns: [{ name: "a", expression: "id" }] }),
  "drop a column": (client, id) => client.call("alterTableDropColumns", id, { columns: ["id"] }),
  "change metadata": (client, id) => client.call("updateTableSchemaMetadata", id, { metadata: { a: "b" } }),
  "change metadata of a field": (client, id) =>
    client.call("updateFieldMetadata", id, { updates: [{ path: "id", metadata: { a: { value: "b" } } }] }),
  "build an index": (client, id) =>
    client.call("createTableScalarIndex", id, { column: "id", indexType: "BTREE" }),
  explain: (client, id) => client.call("explainTableQueryPlan", id, { query: { k: 1n } }),
};

async function createWorld(t: TestContext, id: string) {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  if (id.includes("$")) await client.call("createNamespace", "n");
  return { root, base: join(root, "data"), client };
}
const directoryOf = async (client: TestClient, id: string) =>
  (await client.call("describeTable", id)).location as string;

for (const id of ["t", "n$t"]) {
  test(`every call refuses the table ${id}, whose directory somebody removed, instead of taking it for empty`, async (t) => {
    const { client } = await createWorld(t, id);
    await client.upload("createTable", id, {}, rows);
    assert.equal((await client.call("countTableRows", id)).count, 2n);
    await rm(await directoryOf(client, id), { recursive: true });
    const calls = Object.entries(CALLS).map(([name, call]) =>
      assert.rejects(call(client, id), failsWith("InvalidTableState"), name),
    );
    await Promise.all(calls);
    const directory = await directoryOf(client, id);
    await assert.rejects(readdir(directory), { code: "ENOENT" }, "nothing has begun a new history");
    await client.upload("createTable", id, { mode: CreateTableMode.OVERWRITE }, rows);
    assert.equal((await client.call("countTableRows", id)).count, 2n);
    await rm(directory, { recursive: true });
    await client.call("dropTable", id);
    await assert.rejects(client.call("countTableRows", id), failsWith("TableNotFound"));
  });

  test(`a declared table ${id} gets its data, and reports until then that it has none`, async (t) => {
    const { client } = await createWorld(t, id);
    await client.call("declareTable", id);
    await assert.rejects(client.call("countTableRows", id), failsWith("TableNotFound"));
    assert.equal((await client.call("describeTable", id, { checkDeclared: true })).isOnlyDeclared, true);
    assert.deepEqual((await client.call("listTableVersions", id)).versions, []);
    await client.upload("insertIntoTable", id, {}, rows);
    assert.equal((await client.call("countTableRows", id)).count, 2n);
  });

  test(`a table ${id} whose mark comes a little later than its row is declared`, async (t) => {
    const { root, base, client } = await createWorld(t, id);
    const { context, close } = await openDirectory({ root, log: silent });
    t.onTestFinished(close);
    const location = id === "t" ? "t.lance" : "0_n$t";
    await context.catalog.mutate((draft) =>
      draft.put({ objectId: id, objectType: "table", location, properties: {} }),
    );
    const insert = client.upload("insertIntoTable", id, {}, rows);
    await mkdir(join(base, location));
    await writeFile(join(base, location, ".lance-reserved"), "reserved");
    await insert;
    assert.equal((await client.call("countTableRows", id)).count, 2n);
  });
}

for (const id of ["t", "n$t"]) {
  /** Inserts into a declared table, and calls a function after the data is written and before it is confirmed. */
  async function insertBefore(t: TestContext, happens: (client: TestClient) => Promise<unknown>) {
    const { root, base, client } = await createWorld(t, id);
    await client.call("declareTable", id);
    const directory = await directoryOf(client, id);
    const { context, close } = await openDirectory({ root, log: silent });
    t.onTestFinished(close);
    let pending: typeof happens | undefined = happens;
    const catalog: Catalog = {
      ...context.catalog,
      async mutate(mutation) {
        const work = pending;
        pending = undefined;
        await work?.(client);
        return context.catalog.mutate(mutation);
      },
    };
    const watched = withParts(context, { catalog });
    const { insertIntoTable } = createInsertOperations(watched, createMultipartWrites(watched));
    const method = LanceNamespaceService.method.insertIntoTable;
    async function* body() {
      yield rows;
    }
    const call = beginCall(method, { id: parseIdentifier(id) });
    const insert = insertIntoTable(create(method.input), body(), call);
    return { base, client, location: directory.slice(base.length + 1), insert };
  }

  test(`the first rows of ${id} stay when it is deregistered before they are confirmed`, async (t) => {
    const { client, location, insert } = await insertBefore(t, async (other) => {
      await other.upload("insertIntoTable", id, {}, rows);
      await other.call("deregisterTable", id);
    });
    await insert;
    await client.call("registerTable", id, { location });
    assert.equal((await client.call("countTableRows", id)).count, 4n);
  });

  test(`the first rows of ${id} are refused when it is dropped before they are confirmed`, async (t) => {
    const { client, insert } = await insertBefore(t, (other) => other.call("dropTable", id));
    await assert.rejects(insert, failsWith("ConcurrentModification"));
    assert.deepEqual((await client.call("listTables", id === "t" ? "" : "n")).tables, []);
  });
}

test("a declared table of a namespace has its mark before its row, and a refused one leaves nothing", async (t) => {
  const { base, client } = await createWorld(t, "n$t");
  await client.call("declareTable", "n$t");
  assert.deepEqual(await readdir(await directoryOf(client, "n$t")), [".lance-reserved"]);
  const before = await readdir(base);
  await assert.rejects(client.call("declareTable", "n$t"), failsWith("TableAlreadyExists"));
  await assert.rejects(client.call("declareTable", "other$t"), failsWith("NamespaceNotFound"));
  assert.deepEqual(await readdir(base), before);
});
