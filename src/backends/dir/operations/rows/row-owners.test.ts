import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { Int32, Table, tableToIPC, vectorFromArray } from "apache-arrow";
import { type TestContext, test } from "vitest";
import {
  failsWith,
  openClient,
  silent,
  temporaryDirectory,
} from "../../../../../test/fixtures/dir/directory-backend.ts";
import { withParts } from "../../../../../test/fixtures/dir/with-parts.ts";
import { beginCall } from "../../../../../test/support/caller.ts";
import { CreateTableMode } from "../../../../gen/lance/namespace/v1/data_pb.ts";
import { LanceNamespaceService } from "../../../../gen/lance/namespace/v1/service_pb.ts";
import type { Catalog } from "../../catalog/catalog.ts";
import { openDirectory } from "../../open-directory.ts";
import { createChangeOperations } from "./change.ts";
import { createCreateOperations } from "./create-table.ts";

const { method } = LanceNamespaceService;
const rowsOf = (count: number) =>
  tableToIPC(new Table({ id: vectorFromArray(Array(count).fill(7), new Int32()) }), "stream");

/** The table `t`, and a gateway whose first commit of the catalog comes after the work of others. */
async function createWorld(t: TestContext, { isListed = true } = {}) {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  await client.upload("createTable", "t", {}, rowsOf(2));
  const { context, close } = await openDirectory({ root, log: silent });
  t.onTestFinished(close);
  if (!isListed) await context.catalog.mutate((draft) => draft.delete("t"));
  function late(work: () => Promise<unknown>) {
    let isDone = false;
    const mutate: Catalog["mutate"] = async (mutation) => {
      const isFirst = !isDone;
      isDone = true;
      if (isFirst) await work();
      return context.catalog.mutate(mutation);
    };
    return withParts(context, { catalog: { ...context.catalog, mutate } });
  }
  return {
    client,
    update(meanwhile: () => Promise<unknown>) {
      const { updateTable } = createChangeOperations(late(meanwhile));
      const updates = [{ column: "id", expression: "8" }];
      const request = create(method.updateTable.input, { updates, properties: { of: "update" } });
      return updateTable(request, beginCall(method.updateTable, { id: ["t"] }));
    },
    overwrite(meanwhile: () => Promise<unknown>) {
      const watched = late(meanwhile);
      const { createTable } = createCreateOperations(watched);
      async function* body() {
        yield rowsOf(5);
      }
      const request = create(method.createTable.input, {
        mode: CreateTableMode.OVERWRITE,
        properties: { of: "overwrite" },
      });
      return createTable(request, body(), beginCall(method.createTable, { id: ["t"] }));
    },
    countOf: async (id: string) => (await client.call("countTableRows", id)).count,
  };
}

test("the properties of an update do not replace a namespace that has taken the name of the table", async (t) => {
  const { client, update } = await createWorld(t);
  const updated = update(async () => {
    await client.call("dropTable", "t");
    await client.call("createNamespace", "t", { properties: { of: "namespace" } });
  });
  await assert.rejects(updated, failsWith("OutcomeUnknown"));
  const { properties } = await client.call("describeNamespace", "t");
  assert.deepEqual(properties, { of: "namespace" });
});

test("the properties of an update are not given to the next table of the name", async (t) => {
  const { client, update } = await createWorld(t);
  const updated = update(async () => {
    await client.call("renameTable", "t", { newTableName: "u" });
    await client.upload("createTable", "t", {}, rowsOf(1));
  });
  await assert.rejects(updated, failsWith("OutcomeUnknown"));
  assert.deepEqual((await client.call("describeTable", "t")).properties, {});
});

test("the properties of an update of a table without a row do not bring its name back after a rename", async (t) => {
  const { client, update } = await createWorld(t, { isListed: false });
  const updated = update(() => client.call("renameTable", "t", { newTableName: "u" }));
  await assert.rejects(updated, failsWith("OutcomeUnknown"));
  assert.deepEqual((await client.call("listTables", "")).tables, ["u"]);
});

test("overwriting a table without a row leaves its rows to the one that it has become meanwhile", async (t) => {
  const { client, overwrite, countOf } = await createWorld(t, { isListed: false });
  const written = overwrite(() => client.call("renameTable", "t", { newTableName: "u" }));
  await assert.rejects(written, failsWith("ConcurrentModification"));
  assert.deepEqual((await client.call("listTables", "")).tables, ["u"]);
  assert.equal(await countOf("u"), 2n);
});

test("overwriting a table without a row does not replace the row of the next table of the name", async (t) => {
  const { client, overwrite, countOf } = await createWorld(t, { isListed: false });
  const written = overwrite(async () => {
    await client.call("renameTable", "t", { newTableName: "u" });
    await client.upload("createTable", "t", {}, rowsOf(1));
  });
  await assert.rejects(written, failsWith("ConcurrentModification"));
  assert.deepEqual([await countOf("t"), await countOf("u")], [1n, 2n]);
});
