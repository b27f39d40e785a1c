import assert from "node:assert/strict";
import { cp } from "node:fs/promises";
import { create, type JsonObject } from "@bufbuild/protobuf";
import { tableFromIPC } from "apache-arrow";
import { type TestContext, test } from "vitest";
import {
  clientOf,
  failsWith,
  silent,
  temporaryDirectory,
} from "../../../../../test/fixtures/dir/directory-backend.ts";
import { rows } from "../../../../../test/fixtures/dir/rows.ts";
import { type Drive, openOnCluster } from "../../../../../test/fixtures/ray/open-on-cluster.ts";
import type { SimulatedDriver } from "../../../../../test/fixtures/ray/simulated-driver.ts";
import { stageVersion } from "../../../../../test/fixtures/ray/staged-version.ts";
import type { Manifest } from "../../../../gen/lance/format/table_pb.ts";
import {
  type Transaction,
  Transaction_Update_UpdateMode,
  Transaction_UpdateSchema,
  TransactionSchema,
} from "../../../../gen/lance/format/transaction_pb.ts";
import { DescribeJobRequestSchema } from "../../../../gen/lance/gateway/v1/job_pb.ts";
import type { Call } from "../../../../namespace/call/call.ts";
import { createLocalStore } from "../../format/local/local-store.ts";
import { COMMIT_MESSAGE } from "../../format/versions/transaction-records.ts";
import { latestVersion, readVersion } from "../../format/versions/version-files.ts";
import { createDirectoryBackend } from "../../index.ts";
import { BACKFILL_COLUMN, EXPRESSION_KEY } from "./backfill.ts";

const IDS = [1, 2, 3];

/** Opens a directory with a table `t` whose column `id` has an expression, and a cluster whose drivers do what `drive` says. */
async function openColumn(t: TestContext, drive: Drive, expression = "id * 10", minRows = 0) {
  const root = await temporaryDirectory(t);
  const { ray, backend, client } = await openOnCluster(t, root, BACKFILL_COLUMN, drive, minRows);
  await client.upload("createTable", "t", {}, rows(IDS));
  const setExpression = (text: string) =>
    client.call("updateFieldMetadata", "t", {
      updates: [{ path: "id", metadata: { [EXPRESSION_KEY]: { value: text } } }],
    });
  await setExpression(expression);
  const ended = async (jobId: string) => {
    const request = create(DescribeJobRequestSchema, { jobId });
    for (;;) {
      const job = await backend.extensions?.describeJob?.(request, {} as Call);
      if (job !== undefined && job.jobState !== "IN_PROGRESS") return job;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  const fill = async (more: object = {}) => {
    const { jobId } = await client.call("alterTableBackfillColumns", "t", { column: "id", ...more });
    const { jobState: state, result, engine, failure } = await ended(jobId);
    return { state, result, engine, failure };
  };
  const column = async (name = "id") =>
    [...(tableFromIPC(await client.query("t", { k: 100n })).getChild(name) ?? [])].map(Number).sort(byValue);
  return { root, ray, client, fill, column, setExpression };
}

function byValue(a: number, b: number): number {
  return a - b;
}

interface Forgery {
  readonly message?: (own: string) => string;
  readonly operation?: Transaction["operation"];
  readonly readFrom?: bigint;
  readonly change?: (manifest: Manifest) => void;
}

/** Computes the column of the task in a copy of the directory, and brings it to the directory in a file of its own, as a driver does. */
async function commitColumn(
  t: TestContext,
  driver: SimulatedDriver,
  root: string,
  { message = (own) => own, operation, readFrom, change = () => {} }: Forgery = {},
): Promise<void> {
  const { task } = await driver.task();
  const copy = await temporaryDirectory(t);
  await cp(root, copy, { recursive: true });
  const client = clientOf(await createDirectoryBackend({ root: copy, log: silent }));
  const newColumns = [{ name: "made", expression: String(task?.["value"]) }];
  await client.call("alterTableAddColumns", "t", { newColumns });
  await client.close();
  const [from, to] = [copy, root].map((each) => `${each}/data/t.lance`) as [string, string];
  const store = createLocalStore();
  const [made, before] = [
    { store, root: store.keyOf(from) },
    { store, root: store.keyOf(to) },
  ];
  const added = (await readVersion(made)).manifest.fragments.map(({ files }) => files.at(-1));
  await cp(`${from}/data`, `${to}/data`, { recursive: true });
  const version = ((await latestVersion(before))?.version ?? 0n) + 1n;
  const file = await readVersion(before);
  const field = file.manifest.fields.find(({ name }) => name === task?.["column"])?.id ?? -1;
  const value = create(Transaction_UpdateSchema, {
    updateMode: Transaction_Update_UpdateMode.REWRITE_COLUMNS,
  });
  const transaction = create(TransactionSchema, {
    ...{ readVersion: readFrom ?? BigInt(Number(task?.["version"])), uuid: crypto.randomUUID() },
    operation: operation ?? { case: "update", value },
    transactionProperties: { [COMMIT_MESSAGE]: message(`${String(task?.["mark"])}${IDS.length}`) },
  });
  const staged = await stageVersion(to, file, version, transaction, (manifest) => {
    for (const [at, fragment] of manifest.fragments.entries()) {
      for (const each of fragment.files) each.fields = each.fields.map((id) => (id === field ? -2 : id));
      const own = added[at];
      if (own !== undefined) fragment.files.push(Object.assign(own, { fields: [field] }));
    }
    change(manifest);
  });
  await driver.commit(version, staged);
}

test("a gateway commits a column that a driver has filled once", async (t) => {
  const seen: unknown[] = [];
  let again: unknown;
  const { fill, column } = await openColumn(t, async (driver, root) => {
    const { kind, task } = await driver.task();
    const { value, filter, column: name, version, workers } = task ?? {};
    seen.push([kind, name, value, filter, version, workers]);
    await commitColumn(t, driver, root);
    again = await commitColumn(t, driver, root).catch((error: unknown) => error);
    seen.push((await driver.task()).task?.["committed"]);
    await driver.finish({ result: {} });
  });
  const { state, result, engine } = await fill({ concurrency: 1 });
  assert.deepEqual(
    [state, engine, result?.["rows_assigned"], result?.["source_version"], result?.["published_version"]],
    ["DONE", "ray", 3, 2, 3],
  );
  const value = "arrow_cast(CAST(id AS DECIMAL(20, 0)) * CAST(10 AS DECIMAL(20, 0)), 'Int32')";
  assert.deepEqual(seen, [
    ["backfill_column", "id", value, undefined, 2, 1],
    { rows: 3, sourceVersion: 2, version: 3 },
  ]);
  assert.ok(failsWith("InvalidInput")(again));
  assert.deepEqual(await column(), [10, 20, 30]);
}, 60_000);

test("rows that have failed are counted also where a driver dies after its commit", async (t) => {
  let committed: unknown;
  const { fill } = await openColumn(t, async (driver, root) => {
    await commitColumn(t, driver, root, { message: (own) => `${own}, 2 failed` });
    committed = (await driver.task()).task?.["committed"];
    await driver.finish({ failure: { message: "lost", retryable: false } });
  });
  const { state, result } = await fill();
  assert.deepEqual([state, result?.["rows_assigned"], result?.["rows_failed"]], ["DONE", 3, 2]);
  assert.deepEqual(committed, { rows: 3, rowsFailed: 2, sourceVersion: 2, version: 3 });
}, 60_000);

test("a backfill of a column that gets no values makes no version", async (t) => {
  const tasks: (JsonObject | undefined)[] = [];
  const { fill } = await openColumn(t, async (driver) => {
    const { task } = await driver.task();
    tasks.push(task);
    await driver.finish({ result: { rows: 0, version: Number(task?.["version"]) } });
  });
  const { state, result } = await fill({ where: "id > 5" });
  assert.deepEqual([state, result?.["rows_assigned"], result?.["source_version"]], ["DONE", 0, 2]);
  assert.equal(tasks[0]?.["filter"], "id > 5");
});

test("a text that names a column means that column, as in the engine, and no difference", async (t) => {
  const values: unknown[] = [];
  const { client, fill } = await openColumn(
    t,
    async (driver) => {
      values.push((await driver.task()).task?.["value"]);
      await driver.finish({ result: { rows: 0, version: 1 } });
    },
    "id-1",
  );
  const newColumns = [{ name: "id-1", expression: "cast(id * 100 as bigint)" }];
  await client.call("alterTableAddColumns", "t", { newColumns });
  await fill();
  assert.deepEqual(values, ["cast((`id-1`) as int)"]);
}, 60_000);

test("the engine fills its computed columns itself", async (t) => {
  const { ray, client, fill } = await openColumn(t, () => {});
  await client.call("alterTableAddColumns", "t", { newColumns: [{ name: "twice", computed: "id * 2" }] });
  const { state, result } = await fill({ column: "twice" });
  assert.deepEqual([state, result?.["rows_assigned"], ray.jobs.size], ["DONE", 3, 0]);
  const request = { column: "twice", cluster: "ray" };
  await assert.rejects(client.call("alterTableBackfillColumns", "t", request), failsWith("Unsupported"));
});

test("a driver commits nothing but its column", async (t) => {
  const refusals: unknown[] = [];
  const file = (manifest: Manifest) => manifest.fragments[0]?.files.at(-1) ?? {};
  const forgeries: readonly Forgery[] = [
    { message: () => "another job" },
    { message: (own) => `${own} rows` },
    { operation: { case: "append", value: { fragments: [] } as never } },
    { operation: { case: "update", value: create(Transaction_UpdateSchema) } },
    { readFrom: 99n },
    { change: (manifest) => void manifest.fragments.pop() },
    { change: ({ config }) => void Object.assign(config, { "lance.auto_cleanup.interval": "1" }) },
    { change: ({ tableMetadata }) => void Object.assign(tableMetadata, { owner: "other" }) },
    { change: ({ fragments }) => void Object.assign(fragments[0] ?? {}, { physicalRows: 2n }) },
    { change: (manifest) => void Object.assign(file(manifest), { fields: [1] }) },
    { change: (manifest) => void Object.assign(file(manifest), { baseId: 1 }) },
    { change: (manifest) => void Object.assign(file(manifest), { path: "../other.lance" }) },
    { change: ({ fragments }) => void fragments[0]?.files.shift() },
  ];
  const { fill, column } = await openColumn(t, async (driver, root) => {
    for (const forgery of forgeries)
      await commitColumn(t, driver, root, forgery).catch((error: unknown) => refusals.push(error));
    await driver.finish({ failure: { message: "no column", retryable: false } });
  });
  const { state } = await fill();
  assert.equal(state, "FAILED");
  assert.deepEqual(
    refusals.map(failsWith("InvalidInput")),
    forgeries.map(() => true),
  );
  assert.deepEqual(await column(), IDS);
}, 120_000);

test("rows that have changed since the driver read them are not overwritten", async (t) => {
  let refusal: unknown;
  const { client, fill, column } = await openColumn(t, async (driver, root) => {
    await driver.task();
    await client.call("deleteFromTable", "t", { predicate: "id = 2" });
    refusal = await commitColumn(t, driver, root, { readFrom: 2n }).catch((error: unknown) => error);
    await driver.finish({ failure: { message: "no column", retryable: false } });
  });
  await fill();
  assert.match((refusal as Error).message, /has changed since its driver read it/);
  assert.deepEqual(await column(), [1, 3]);
}, 60_000);

test("values that another engine could compute otherwise are computed here", async (t) => {
  const { ray, client, fill, column, setExpression } = await openColumn(t, () => {}, "cast(sin(id) as int)");
  assert.equal((await fill()).state, "DONE");
  assert.deepEqual(await column(), [0, 0, 0]);
  await setExpression("id * 2");
  const tooFew = await openColumn(t, () => {}, "id * 2", 1_000);
  assert.equal((await tooFew.fill()).state, "DONE");
  assert.deepEqual(await tooFew.column(), [2, 4, 6]);
  assert.equal((await fill({ cluster: "embedded" })).state, "DONE");
  assert.equal(ray.jobs.size + tooFew.ray.jobs.size, 0);
  await setExpression("cast(sin(id) as int)");
  const request = { column: "id", cluster: "ray" };
  await assert.rejects(client.call("alterTableBackfillColumns", "t", request), /the function sin/);
});

test("a request for a cluster is refused where there is none", async (t) => {
  const client = clientOf(await createDirectoryBackend({ root: await temporaryDirectory(t), log: silent }));
  t.onTestFinished(client.close);
  await client.upload("createTable", "t", {}, rows(IDS));
  const updates = [{ path: "id", metadata: { [EXPRESSION_KEY]: { value: "id + 1" } } }];
  await client.call("updateFieldMetadata", "t", { updates });
  const request = { column: "id", cluster: "ray" };
  await assert.rejects(client.call("alterTableBackfillColumns", "t", request), failsWith("Unsupported"));
  const { jobId } = await client.call("alterTableBackfillColumns", "t", { ...request, cluster: "mine" });
  assert.notEqual(jobId, "");
});
