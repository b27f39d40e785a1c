import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import {
  Bool,
  type Data,
  Field,
  FixedSizeList,
  Int32,
  List,
  makeData,
  Struct,
  Table,
  tableFromIPC,
  tableToIPC,
  Vector,
  vectorFromArray,
} from "apache-arrow";
import { type TestContext, test } from "vitest";
import {
  failsWith,
  openClient,
  silent,
  type TestClient,
  temporaryDirectory,
} from "../../../../../test/fixtures/dir/directory-backend.ts";
import { engineWith } from "../../../../../test/fixtures/dir/engine.ts";
import { idsOf, rows } from "../../../../../test/fixtures/dir/rows.ts";
import { beginCall } from "../../../../../test/support/caller.ts";
import { createPartBufferPool } from "../../../../arrow/ipc/part-buffer.ts";
import { LanceNamespaceService } from "../../../../gen/lance/namespace/v1/service_pb.ts";
import { openDirectory } from "../../open-directory.ts";
import { requireTable } from "../tables/find-table.ts";
import { insertRows } from "./insert.ts";

/**
 * Inserts a row while another gateway changes the table, right before the engine adds the row.
 *
 * @param before rows that the table gets one by one after its first version
 */
async function insertBeside(
  t: TestContext,
  change: (client: TestClient) => Promise<unknown>,
  before: readonly number[] = [],
) {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  await client.upload("createTable", "t", {}, rows([1]));
  for (const id of before) await client.upload("insertIntoTable", "t", {}, rows([id]));
  const { context, close } = await openDirectory({ root, log: silent });
  t.onTestFinished(close);
  const engine = engineWith(context.engine, "add", () => change(client));
  const call = beginCall(LanceNamespaceService.method.insertIntoTable, { id: ["t"] });
  async function* body() {
    yield rows([2]);
  }
  const target = { table: await requireTable(context, { id: ["t"] }), branch: undefined, overwrite: false };
  const limits = { maxUploadBytes: 1e9, uploadPartBytes: 1e6 };
  const uploads = { ...limits, uploadBuffers: createPartBufferPool(limits.uploadPartBytes) };
  const inserting = insertRows({ ...context, engine, ...uploads }, target, body(), call);
  return { client, inserting };
}

const value = (text: string) => create(ValueSchema, { kind: { case: "stringValue", value: text } });

test("rows that are inserted while a column gets another type are refused, and none of their values becomes null", async (t) => {
  const { client, inserting } = await insertBeside(t, (other) =>
    other.call("alterTableAlterColumns", "t", { alterations: [{ path: "id", dataType: value("int64") }] }),
  );
  await assert.rejects(inserting, failsWith("ConcurrentModification"));
  assert.deepEqual(idsOf(await client.query("t")), [1]);
  assert.equal((await client.call("countTableRows", "t")).count, 1n);
});

test("rows that are inserted while another table takes the place of theirs are refused, and that table stays readable", async (t) => {
  const replace = async (other: TestClient) => {
    await other.call("dropTable", "t");
    await other.upload("createTable", "t", {}, rows([7]));
  };
  const { client, inserting } = await insertBeside(t, replace, [3, 4]);
  await assert.rejects(inserting, failsWith("TableNotFound"));
  assert.deepEqual(idsOf(await client.query("t")), [7]);
  await client.upload("insertIntoTable", "t", {}, rows([8]));
  assert.deepEqual(idsOf(await client.query("t")), [7, 8]);
});

for (const [what, change] of [
  [
    "added",
    (client) => client.call("alterTableAddColumns", "t", { newColumns: [{ name: "x", expression: "id" }] }),
  ],
  ["dropped", (client) => client.call("alterTableDropColumns", "t", { columns: ["name"] })],
  [
    "renamed",
    (client) => client.call("alterTableAlterColumns", "t", { alterations: [{ path: "name", rename: "n" }] }),
  ],
] as [string, (client: TestClient) => Promise<unknown>][]) {
  test(`rows that are inserted while a column is ${what} are added`, async (t) => {
    const { client, inserting } = await insertBeside(t, change);
    await inserting;
    assert.deepEqual(idsOf(await client.query("t")), [1, 2]);
  });
}

test("an insert in whose middle the table is dropped does not fail as if the engine were at fault", async (t) => {
  const { inserting } = await insertBeside(t, async (client) => {
    await client.call("dropTable", "t");
    // The words of the engine when the directory goes while it writes.
    throw new Error("lance error: LanceError(IO): failed to persist temp file: No such file or directory");
  });
  await assert.rejects(inserting, failsWith("TableNotFound"));
});

test("an insert right after the drop of its table is refused, and the table does not come back", async (t) => {
  const { client, inserting } = await insertBeside(t, (other) => other.call("dropTable", "t"));
  await assert.rejects(inserting, failsWith("TableNotFound"));
  assert.deepEqual((await client.call("listTables", "$")).tables, []);
  await client.upload("createTable", "t", {}, rows([7]));
  assert.deepEqual(idsOf(await client.query("t")), [7]);
});

test("a null in a struct whose field must not have one is a mistake of the caller", async (t) => {
  const client = await openClient(t, await temporaryDirectory(t));
  const file = (nullable: boolean, values: readonly (number | null)[]) => {
    const type = new Struct([new Field("x", new Int32(), nullable)]);
    const children = [vectorFromArray(values, new Int32()).data[0] as Data<Int32>];
    const data = makeData({ type, length: values.length, nullCount: 0, children });
    return tableToIPC(new Table({ s: new Vector([data]) }), "stream");
  };
  await client.upload("createTable", "t", {}, file(false, [1]));
  const insertion = client.upload("insertIntoTable", "t", {}, file(true, [2, null]));
  await assert.rejects(insertion, failsWith("TableSchemaValidationError"));
  assert.equal((await client.call("countTableRows", "t")).count, 1n);
});

test("booleans that are all null, which apache-arrow writes without their buffer, are inserted, merged and read", async (t) => {
  const client = await openClient(t, await temporaryDirectory(t));
  const flag = new Field("flag", new Bool(), true);
  const columns = (id: number, value: boolean | null) => ({
    id: vectorFromArray([id], new Int32()),
    flag: vectorFromArray([value], new Bool()),
    s: vectorFromArray([{ flag: value }], new Struct([flag])),
    list: vectorFromArray([[value, value]], new List(flag)),
    fixed: vectorFromArray([[value, value]], new FixedSizeList(2, flag)),
  });
  const file = (id: number, value: boolean | null, form: "stream" | "file") =>
    tableToIPC(new Table(columns(id, value)), form);
  await client.upload("createTable", "t", {}, file(1, null, "stream"));
  await client.upload("insertIntoTable", "t", {}, file(2, true, "file"));
  await client.upload("insertIntoTable", "t", {}, file(3, null, "file"));
  const merge = { on: ["id"], whenMatchedUpdateAll: true };
  await client.upload("mergeInsertIntoTable", "t", merge, file(2, null, "stream"));
  const rows = tableFromIPC(await client.query("t"))
    .toArray()
    .map(String);
  const expected = [1, 2, 3].map((id) => String(new Table(columns(id, null)).get(0)));
  assert.deepEqual(rows.toSorted(), expected);
});
