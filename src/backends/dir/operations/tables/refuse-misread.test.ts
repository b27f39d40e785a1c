import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import {
  Field,
  Int32,
  List,
  Struct,
  Table,
  tableFromIPC,
  tableToIPC,
  Utf8,
  vectorFromArray,
} from "apache-arrow";
import { type TestContext, test } from "vitest";
import {
  failsWith,
  openClient,
  silent,
  temporaryDirectory,
} from "../../../../../test/fixtures/dir/directory-backend.ts";
import { beginCall } from "../../../../../test/support/caller.ts";
import { createRandom } from "../../../../../test/support/random.ts";
import { seedOf } from "../../../../../test/support/seed.ts";
import { formatFieldPath } from "../../../../arrow/field-path.ts";
import { UpdateTableRequestSchema } from "../../../../gen/lance/namespace/v1/data_pb.ts";
import { QueryTableRequestSchema } from "../../../../gen/lance/namespace/v1/query_pb.ts";
import { LanceNamespaceService } from "../../../../gen/lance/namespace/v1/service_pb.ts";
import { isLanceError } from "../../../../namespace/errors.ts";
import type { WriteGate } from "../../concurrency/locks.ts";
import { createTurns } from "../../concurrency/turns.ts";
import {
  ENCODING_KEY,
  findMisread,
  SOUND_ENCODING,
} from "../../engine/workarounds/misread-lists/find-misread.ts";
import { readVersion } from "../../format/versions/version-files.ts";
import { openDirectory } from "../../open-directory.ts";
import { buildQuery, type Run } from "../query/build.ts";
import { startRun } from "../read/run-query.ts";
import { createChangeOperations } from "../rows/change.ts";
import { openGuarded } from "./call-data.ts";
import { requireTable } from "./find-table.ts";
import { datasetOf } from "./open-data.ts";

interface Row {
  readonly id: number;
  readonly s: { readonly n: number; readonly l: readonly (string | null)[] | null } | null;
}

const TYPE = new Struct([
  new Field("n", new Int32(), true),
  new Field("l", new List(new Field("item", new Utf8(), true)), true),
]);

function ipcOf(rows: readonly Row[], metadata = new Map<string, string>()): Uint8Array {
  const [ids, structs] = [rows.map(({ id }) => id), rows.map(({ s }) => s)];
  const columns = { id: vectorFromArray(ids, new Int32()), s: vectorFromArray(structs, TYPE) };
  const table = new Table(columns);
  for (const [key, value] of metadata) table.schema.fields[1]?.metadata.set(key, value);
  return tableToIPC(table, "stream");
}

function rowsOf(ipc: Uint8Array): Row[] {
  const rows = tableFromIPC(ipc).toArray() as {
    id: number;
    s: { n: number; l: Iterable<string> | null } | null;
  }[];
  return rows
    .map(({ id, s }) => ({ id, s: s && { n: s.n, l: s.l && [...s.l] } }))
    .sort((a, b) => a.id - b.id);
}

/** Rows with null structs and null lists beside texts of a length. */
function nestedRows(count: number, length: number): Row[] {
  return Array.from({ length: count }, (_, id) => {
    const l =
      id % 5 === 1 ? null : Array.from({ length: id % 4 }, (_, at) => `${id}.${at}`.padEnd(length, "x"));
    return { id, s: id % 3 === 0 ? null : { n: id, l } };
  });
}

async function openMisread(t: TestContext) {
  const client = await openClient(t, await temporaryDirectory(t));
  await client.upload("createTable", "t", {}, ipcOf(nestedRows(100, 300)));
  return client;
}

const refused = failsWith("Unsupported");

test("answers with the rows that were written, or refuses to read them, whatever is null, empty or long", {
  timeout: 60_000,
}, async (t) => {
  const { below } = createRandom(seedOf("TEST_SEED"));
  const isRare = () => below(4) === 0;
  const client = await openClient(t, await temporaryDirectory(t));
  for (let table = 0; table < 60; table++) {
    const [structs, lists, items, empty, long] = Array.from({ length: 5 }, () => below(2) === 0);
    const rows = Array.from({ length: 1 + below(60) }, (_, id) => {
      const text = () =>
        items && isRare() ? null : `${below(1000)}`.padEnd(long && isRare() ? 300 : 5, "x");
      const count = below(3) + (empty ? 0 : 1);
      const l = lists && isRare() ? null : Array.from({ length: count }, text);
      return { id, s: structs && isRare() ? null : { n: id, l } };
    });
    const id = `t${table}`;
    await client.upload("createTable", id, {}, ipcOf(rows));
    const answer = await client.query(id).then(rowsOf, (error: unknown) => {
      if (!isLanceError(error, "Unsupported") || !long || !structs) throw error;
      return rows;
    });
    assert.deepEqual(answer, rows);
  }
});

test("reads a column with null structs and long texts whose lists are all there, also if some are empty", async (t) => {
  const client = await openClient(t, await temporaryDirectory(t));
  const rows = nestedRows(200, 300).map(({ id, s }) => ({ id, s: s && { n: s.n, l: s.l ?? [] } }));
  await client.upload("createTable", "t", {}, ipcOf(rows));
  assert.deepEqual(rowsOf(await client.query("t")), rows);
  await client.upload("insertIntoTable", "t", {}, ipcOf([{ id: 200, s: { n: 1, l: null } }]));
  assert.equal(rowsOf(await client.query("t")).length, 201);
  const long = rows.map(({ id, s }) => ({
    id,
    s: s && { ...s, l: s.l.map((text) => `${text}`.padEnd(20_000)) },
  }));
  const mixed = [...long, { id: 200, s: { n: 1, l: null } }];
  await client.upload("createTable", "u", {}, ipcOf(mixed));
  await assert.rejects(client.query("u"), refused);
});

test("refuses misread lists of packed structs", async (t) => {
  const packed = new Struct([new Field("a", new Int32(), true), new Field("b", new Utf8(), true)]);
  const items = new List(new Field("item", packed, true, new Map([["lance-encoding:packed", "true"]])));
  const type = new Struct([new Field("l", items, true)]);
  const structs = nestedRows(100, 5).map(
    ({ s }) => s && { l: s.l?.map((text) => ({ a: s.n, b: text })) ?? null },
  );
  const client = await openClient(t, await temporaryDirectory(t));
  const table = new Table({ s: vectorFromArray(structs, type) });
  await client.upload("createTable", "t", {}, tableToIPC(table, "stream"));
  await assert.rejects(client.query("t"), refused);
});

test("reads the other columns of a table, and the other fields of a struct, that has values which the engine misreads", async (t) => {
  const client = await openMisread(t);
  const plain = nestedRows(100, 300).map(({ id, s }) => ({ id, n: s?.n ?? null }));
  const columns = { columnAliases: { id: "id", n: "s.n" } };
  const ipc = await client.query("t", { columns, filter: "s.n >= 0 OR s.n IS NULL" });
  assert.deepEqual(
    tableFromIPC(ipc)
      .toArray()
      .map(({ id, n }) => ({ id, n })),
    plain,
  );
});

test("refuses every call that would answer with misread values or write them", async (t) => {
  const client = await openMisread(t);
  await assert.rejects(client.query("t"), refused);
  await assert.rejects(client.query("t", { columns: { columnNames: ["id", "s"] } }), refused);
  await assert.rejects(
    client.query("t", { columns: { columnAliases: { x: "array_length(S.`l`)" } } }),
    refused,
  );
  await assert.rejects(client.query("t", { columns: { columnNames: ["id"] }, filter: "s IS NULL" }), refused);
  await assert.rejects(client.call("countTableRows", "t", { predicate: "s.l IS NULL" }), refused);
  await assert.rejects(client.call("deleteFromTable", "t", { predicate: "s.l IS NULL" }), refused);
  const updates = [{ column: "id", expression: "id + 1" }];
  await assert.rejects(client.call("updateTable", "t", { updates }), refused);
});

test("orders by columns whose names are not valid SQL, and refuses misread values only", async (t) => {
  const client = await openClient(t, await temporaryDirectory(t));
  const rows = nestedRows(50, 300);
  const names = ["it's", "a--b", "a /* b", "l"];
  const ids = rows.map(({ id }) => id);
  const columns = names.map((name) => [name, vectorFromArray(ids, new Int32())] as const);
  const structs = vectorFromArray(
    rows.map(({ s }) => s),
    TYPE,
  );
  const table = new Table({ ...Object.fromEntries(columns), s: structs });
  await client.upload("createTable", "t", {}, tableToIPC(table, "stream"));
  for (const name of names) {
    const path = formatFieldPath([name]);
    const columns = { columnNames: [path] };
    const ordered = await client.query("t", { columns, orderBy: [{ columnName: name, ascending: false }] });
    const values = [...(tableFromIPC(ordered).getChildAt(0) ?? [])].map(Number);
    assert.deepEqual(
      values,
      ids.toSorted((a, b) => b - a),
      name,
    );
  }
});

test("keeps the values of rows when a client asks for an index that the engine builds with a compaction", async (t) => {
  const client = await openMisread(t);
  await client.upload("insertIntoTable", "t", {}, ipcOf(nestedRows(50, 300)));
  const request = { column: "id", name: "i" };
  const zones = client.call("createTableIndex", "t", { ...request, indexType: "ZONEMAP" });
  await assert.rejects(zones, refused);
  const { fragmentStats } = await client.call("getTableStats", "t");
  assert.equal(fragmentStats?.numFragments, 2n);
  await client.call("createTableIndex", "t", { ...request, indexType: "BTREE" });
});

test("refuses to search for words in misread values, and to build an index of them", async (t) => {
  const client = await openClient(t, await temporaryDirectory(t));
  await client.upload("createTable", "t", {}, ipcOf(nestedRows(50, 5)));
  const request = { column: "s.l", indexType: "FTS", name: "words" };
  await client.call("createTableIndex", "t", request);
  const search = (fields: object) =>
    client.query("t", { columns: { columnNames: ["id"] }, k: 9n, fullTextQuery: fields });
  const match = { terms: "7", fuzziness: 0 };
  const searches = [
    { stringQuery: { query: "7" } },
    { stringQuery: { query: "7", columns: ["s.l"] } },
    { structuredQuery: { query: { match } } },
    { structuredQuery: { query: { boolean: { must: [{ match: { ...match, column: "s.l" } }] } } } },
  ];
  for (const fields of searches) await search(fields);
  await client.upload("insertIntoTable", "t", {}, ipcOf(nestedRows(50, 300)));
  for (const fields of searches) await assert.rejects(search(fields), refused);
  await assert.rejects(client.call("createTableIndex", "t", { ...request, replace: true }), refused);
  const labels = { column: "s.l", indexType: "LABEL_LIST", name: "labels" };
  await assert.rejects(client.call("createTableIndex", "t", labels), refused);
});

test("refuses an update, and a query, while which another call stores misread values and moves the shared handle", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  await client.upload("createTable", "t", {}, ipcOf(nestedRows(50, 5)));
  const { context, close } = await openDirectory({ root, log: silent, maintenance: false });
  t.onTestFinished(close);
  const { path } = await requireTable(context, { id: ["t"] });
  const store = async () => {
    await client.upload("insertIntoTable", "t", {}, ipcOf(nestedRows(50, 300)));
    (await context.engine.acquire(path)).release();
  };
  const data = await openGuarded(
    context,
    beginCall(LanceNamespaceService.method.queryTable, { id: ["t"] }),
    {},
  );
  await data.refuseMisread(() => ({ all: true }));
  const pass: WriteGate["pass"] = async (table, change) => {
    await store();
    return context.gate.pass(table, change);
  };
  const { updateTable } = createChangeOperations({ ...context, gate: { ...context.gate, pass } });
  const updates = [{ column: "id", expression: "id + 1" }];
  const call = beginCall(LanceNamespaceService.method.updateTable, { id: ["t"] });
  await assert.rejects(async () => updateTable(create(UpdateTableRequestSchema, { updates }), call), refused);
  const built = await buildQuery(data.table, create(QueryTableRequestSchema), await data.schema(), {
    textFields: data.textFields,
    maxExpansions: 0,
    safeFilter: async (filter) => filter,
  });
  const [run] = built.runs as [Run];
  const options = { data, call, turns: createTurns(1) };
  await assert.rejects(startRun(built, run, 100, options), refused);
  data.release();
});

test("lets other work run while very many files are looked at that are known already", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  await client.upload("createTable", "t", {}, ipcOf(nestedRows(5, 5)));
  const { context, close } = await openDirectory({ root, log: silent, maintenance: false });
  t.onTestFinished(close);
  const dataset = datasetOf(context, await requireTable(context, { id: ["t"] }));
  const { manifest } = await readVersion(dataset);
  await findMisread(dataset, manifest);
  const [fragment] = manifest.fragments;
  assert.ok(fragment);
  const files = Array.from({ length: 50 }, () => fragment.files).flatMap((known) =>
    known.map((file) => ({
      ...file,
      get fields() {
        for (const start = performance.now(); performance.now() - start < 1; );
        return file.fields;
      },
    })),
  );
  let turned = false;
  setImmediate(() => {
    turned = true;
  });
  await findMisread(dataset, { ...manifest, fragments: [{ ...fragment, files }] });
  assert.ok(turned);
});

test("reads and writes rows right whose column has the metadata for the encoding of short values", async (t) => {
  const client = await openClient(t, await temporaryDirectory(t));
  const rows = nestedRows(100, 300);
  const sound = ipcOf(rows, new Map([[ENCODING_KEY, SOUND_ENCODING]]));
  await client.upload("createTable", "t", {}, sound);
  assert.deepEqual(rowsOf(await client.query("t")), rows);
  await client.upload("insertIntoTable", "t", {}, ipcOf([]));
  await client.call("updateTable", "t", { updates: [{ column: "id", expression: "id + 0" }] });
  assert.deepEqual(rowsOf(await client.query("t")), rows);
  const request = { on: ["id"], whenMatchedUpdateAll: true, whenNotMatchedInsertAll: true };
  await client.upload("mergeInsertIntoTable", "t", request, ipcOf(rows.slice(20)));
  assert.deepEqual(rowsOf(await client.query("t")), rows);
});
