import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { rm } from "node:fs/promises";
import { Field, Int32, List, Schema, Table, tableToIPC, Utf8 } from "apache-arrow";
import { test } from "vitest";
import {
  failsWith,
  openClient,
  temporaryDirectory,
} from "../../../../../test/fixtures/dir/directory-backend.ts";
import { ended, jobsOf, openView, queried, rows } from "../../../../../test/fixtures/dir/views.ts";
import { MaterializedViewKind } from "../../../../gen/lance/namespace/v1/view_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { createLocalStore } from "../../format/local/local-store.ts";
import type { ObjectStore } from "../../format/storage.ts";
import type { Job } from "../../jobs/job.ts";

test("a view whose directory somebody removed is refused, and gets no job", async (t) => {
  const { root, client } = await openView(t, "SELECT id FROM t");
  const { location = "" } = await client.call("describeTable", "v");
  await rm(location, { recursive: true });
  await assert.rejects(client.call("refreshMaterializedView", "v"), failsWith("InvalidTableState"));
  assert.deepEqual(await jobsOf(root).list(assert.fail), []);
});

test("a view keeps its original schema", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  await client.upload("createTable", "t", {}, rows(0, 3));
  const schema = new Schema(
    [
      new Field("id", new Int32(), false, new Map([["unit", "m"]])),
      new Field("tags", new List(new Field("element", new Utf8(), true)), true),
    ],
    new Map([["owner", "me"]]),
  );
  await client.call("createMaterializedView", "v", {
    kind: MaterializedViewKind.QUERY,
    sourceQuery: "SELECT id, make_array(concat('t', cast(id as string))) AS tags FROM t",
    outputSchema: Buffer.from(tableToIPC(new Table(schema), "stream")).toString("base64"),
    autoRefresh: true,
  });
  const { properties } = await client.call("describeTable", "v");
  assert.equal(properties["lance_gateway.view.auto_refresh"], "true");
  assert.match(properties["lance_gateway.view.source_query"] ?? "", /^SELECT/);
  await ended(root, (await client.call("refreshMaterializedView", "v")).jobId);
  const { data, schema: kept } = await queried(client);
  assert.deepEqual(data, [0, 1, 2]);
  assert.deepEqual([kept.fields[0]?.nullable, kept.fields[0]?.metadata.get("unit")], [false, "m"]);
  assert.equal(kept.metadata.get("owner"), "me");
});

test("the next process finishes a job that a restart interrupts, under its id", async (t) => {
  const root = await temporaryDirectory(t);
  const first = await openClient(t, root);
  await first.upload("createTable", "t", {}, rows(0, 5000));
  await first.call("alterTableAddColumns", "t", { newColumns: [{ name: "twice", computed: "id * 2" }] });
  const backfill = await first.call("alterTableBackfillColumns", "t", { column: "twice" });
  await first.close();
  assert.equal((await jobsOf(root).get(backfill.jobId))?.state, "queued");

  const second = await openClient(t, root);
  const job = await ended(root, backfill.jobId);
  assert.deepEqual([job.state, job.attempts, job.table], ["succeeded", 2, ["t"]]);
  assert.equal((await second.call("countTableRows", "t", { predicate: "twice = id * 2" })).count, 5000n);
  assert.deepEqual((await second.call("listAllTables", "$")).tables, ["t"]);
});

test("a job whose table is gone or was replaced fails and says so, and one whose table was renamed does its work", async (t) => {
  const root = await temporaryDirectory(t);
  const first = await openClient(t, root);
  await first.call("createNamespace", "n");
  await first.upload("createTable", "n$t", {}, rows(0, 10));
  await first.call("alterTableAddColumns", "n$t", { newColumns: [{ name: "twice", computed: "id * 2" }] });
  const { jobId } = await first.call("alterTableBackfillColumns", "n$t", { column: "twice" });
  await first.close();
  const job = (await jobsOf(root).get(jobId)) as Job;
  const moved = { ...job, id: randomUUID(), spec: { ...job.spec, location: "other" } };
  const renamed = { ...job, id: randomUUID(), table: ["n", "former"] };
  for (const each of [moved, renamed]) await jobsOf(root).put(each);
  await openClient(t, root);
  for (const id of [jobId, renamed.id]) assert.equal((await ended(root, id)).state, "succeeded");
  assert.equal((await ended(root, moved.id)).error?.name, "TableNotFound");
});

test("only the creation of a view defines one, since it alone needs a right to the source", async (t) => {
  const { client } = await openView(t, "SELECT id FROM t");
  const { properties } = await client.call("describeTable", "v");
  const forged = { ...properties, "lance_gateway.view.source_query": "SELECT id FROM secret" };
  await client.upload("createTable", "own", {}, rows(0, 1));
  const { location } = await client.call("describeTable", "own");
  await client.call("deregisterTable", "own");
  await client.upload("createTable", "other", {}, rows(0, 1));
  const declare = { id: ["x"], properties: forged };
  for (const attempt of [
    () => client.upload("createTable", "x", { properties: forged }, rows(0, 1)),
    () => client.upload("createTable", "other", { properties: forged, mode: 3 }, rows(0, 1)),
    () => client.call("declareTable", "x", { properties: forged }),
    () =>
      client.call("registerTable", "x", { location: location?.split("/").at(-1) ?? "", properties: forged }),
    () =>
      client.call("updateTable", "other", {
        properties: forged,
        updates: [{ column: "id", expression: "id" }],
      }),
    () =>
      client.call("batchCommitTables", "$", {
        operations: [{ operation: { case: "declareTable", value: declare } }],
      }),
  ])
    await assert.rejects(attempt(), failsWith("InvalidInput"), String(attempt));
  await assert.rejects(client.call("describeTable", "x"), failsWith("TableNotFound"));
  assert.deepEqual((await client.call("describeTable", "other")).properties, {});
});

test("a view that was made counts as made when its first refresh cannot be stored", async (t) => {
  const root = await temporaryDirectory(t);
  const files = createLocalStore();
  const store: ObjectStore = {
    ...files,
    async put(key, bytes) {
      if (key.includes("/.jobs/open/")) throw new LanceError("Throttling", "fewer requests");
      await files.put(key, bytes);
    },
  };
  const client = await openClient(t, root, { storage: { store, root, engineOptions: {} } });
  await client.upload("createTable", "t", {}, rows(0, 3));
  const made = client.call("createMaterializedView", "v", {
    kind: MaterializedViewKind.QUERY,
    sourceQuery: "SELECT id FROM t",
    withNoData: false,
  });
  await assert.rejects(made, failsWith("OutcomeUnknown"));
  await client.call("tableExists", "v");
});
