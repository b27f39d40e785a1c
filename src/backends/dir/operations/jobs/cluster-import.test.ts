import assert from "node:assert/strict";
import { cp } from "node:fs/promises";
import { create, fromBinary } from "@bufbuild/protobuf";
import { type TestContext, test } from "vitest";
import {
  clientOf,
  failsWith,
  silent,
  temporaryDirectory,
} from "../../../../../test/fixtures/dir/directory-backend.ts";
import { idsOf, rows } from "../../../../../test/fixtures/dir/rows.ts";
import { startRayStandIn } from "../../../../../test/fixtures/ray/ray-stand-in.ts";
import { type SimulatedDriver, simulateDriver } from "../../../../../test/fixtures/ray/simulated-driver.ts";
import { stageVersion } from "../../../../../test/fixtures/ray/staged-version.ts";
import { until } from "../../../../../test/support/until.ts";
import { BasePathSchema, type Manifest } from "../../../../gen/lance/format/table_pb.ts";
import { TransactionSchema } from "../../../../gen/lance/format/transaction_pb.ts";
import { readSection } from "../../format/files/manifest-file.ts";
import { createLocalStore } from "../../format/local/local-store.ts";
import { COMMIT_MESSAGE } from "../../format/versions/transaction-records.ts";
import { latestVersion, readVersion } from "../../format/versions/version-files.ts";
import { createDirectoryBackend, type DirectoryBackend } from "../../index.ts";
import { openDirectory } from "../../open-directory.ts";
import { requireTable } from "../tables/find-table.ts";
import { allowedLocation, type ImportSource, importElsewhere } from "./cluster-import.ts";

const SOURCE = { source: "/data/raw/*.parquet", format: "parquet", mode: "append" } as const;

/** Opens a directory with a table `t` of one row, one `new` without data, and a cluster whose drivers do what `drive` says. */
async function openOnCluster(
  t: TestContext,
  drive: (driver: SimulatedDriver, root: string) => unknown,
  importLocations: readonly string[] = ["/data"],
) {
  const root = await temporaryDirectory(t);
  let backend: DirectoryBackend | undefined;
  const ray = await startRayStandIn(t, (job) =>
    drive(simulateDriver(backend as DirectoryBackend, job), root),
  );
  const own = { minRows: 0, workers: 2, kinds: ["import_files"], pollMs: [5, 20] as const };
  const cluster = { addresses: [ray.url], gatewayUrl: "http://127.0.0.1:1", ...own, importLocations };
  const client = clientOf(await createDirectoryBackend({ root, log: silent }));
  t.onTestFinished(client.close);
  await client.upload("createTable", "t", {}, rows([0]));
  await client.call("declareTable", "new");
  const command = await openDirectory({ root, log: silent });
  t.onTestFinished(command.close);
  const importInto = async (id: string, signal?: AbortSignal, files: Partial<ImportSource> = {}) => {
    const table = await requireTable(command.context, { id: [id] });
    const source = { ...SOURCE, ...files };
    const importing = importElsewhere(command.context, table, source, { waitMs: 60_000, signal });
    importing.catch(() => {});
    // A gateway looks for such jobs when it starts, and then every 15 seconds.
    await until(async () => (await command.context.jobs.open()).length > 0);
    backend = await createDirectoryBackend({ root, log: silent, cluster });
    t.onTestFinished(backend.close);
    return importing;
  };
  const ids = async (id: string) => idsOf(await client.query(id, { k: 100n })).sort();
  const isCancelled = (id: string) => command.context.jobs.isCancelRequested(id);
  return { client, importInto, isCancelled, ids };
}

interface Forgery {
  readonly message?: string;
  /** Default: that of the insertion. */
  readonly readFrom?: bigint;
  readonly change?: (manifest: Manifest) => void;
}

/** Inserts into a copy of the directory, and brings the new version of the table to it as a staged one, as a driver does. */
async function commitRows(
  t: TestContext,
  driver: SimulatedDriver,
  root: string,
  table: string,
  { message, readFrom, change = () => {} }: Forgery = {},
): Promise<void> {
  const { task } = await driver.task();
  const copy = await temporaryDirectory(t);
  await cp(root, copy, { recursive: true });
  const client = clientOf(await createDirectoryBackend({ root: copy, log: silent }));
  await client.upload("insertIntoTable", table, {}, rows([7, 8]));
  await client.close();
  const [from, to] = [copy, root].map((each) => `${each}/data/${table}.lance`) as [string, string];
  const store = createLocalStore();
  const dataset = { store, root: store.keyOf(from) };
  const version = (await latestVersion(dataset))?.version ?? 0n;
  const file = await readVersion(dataset, version);
  const transaction = fromBinary(
    TransactionSchema,
    await readSection(file, file.manifest.transactionSection ?? 0n),
  );
  transaction.transactionProperties[COMMIT_MESSAGE] = message ?? String(task?.["mark"]);
  if (readFrom !== undefined) transaction.readVersion = readFrom;
  await cp(`${from}/data`, `${to}/data`, { recursive: true });
  const staged = await stageVersion(to, file, version, transaction, change);
  await driver.commit(version, staged);
}

for (const [table, expected, version] of [
  ["t", [0, 7, 8], 2],
  ["new", [7, 8], 1],
] as const)
  test(`a gateway commits the rows of files to the table ${table} once`, async (t) => {
    const seen: unknown[] = [];
    let again: unknown;
    const { importInto, ids } = await openOnCluster(t, async (driver, root) => {
      const { kind, task } = await driver.task();
      seen.push(kind, task?.["source"], task?.["within"], task?.["is_new"], task?.["committed"]);
      await commitRows(t, driver, root, table);
      again = await commitRows(t, driver, root, table).catch((error: unknown) => error);
      seen.push((await driver.task()).task?.["committed"]);
      await driver.finish({ result: {} });
    });
    assert.deepEqual(await importInto(table), { rows: 2, version });
    const expectedTask = ["import_files", SOURCE.source, "/data", table === "new", undefined];
    assert.deepEqual(seen, [...expectedTask, { rows: 2, version }]);
    assert.ok(failsWith("InvalidInput")(again));
    assert.deepEqual(await ids(table), expected);
  }, 60_000);

test("a driver commits nothing but the rows of its import", async (t) => {
  const refusals: unknown[] = [];
  const forgeries: readonly Forgery[] = [
    { message: "another job" },
    { change: ({ config }) => void Object.assign(config, { "lance.auto_cleanup.interval": "1" }) },
    { change: (manifest) => void manifest.fragments.shift() },
    { change: ({ fragments }) => void Object.assign(fragments[0] ?? {}, { physicalRows: 2n }) },
    { change: ({ fragments }) => void Object.assign(fragments[1]?.files[0] ?? {}, { baseId: 1 }) },
    { change: ({ fragments }) => void Object.assign(fragments[1] ?? {}, { files: fragments[0]?.files }) },
    { change: ({ fragments }) => void Object.assign(fragments[1] ?? {}, { id: 0n }) },
    { change: (manifest) => void Object.assign(manifest, { writerFeatureFlags: 1n << 1n }) },
    { change: (manifest) => void manifest.basePaths.push(create(BasePathSchema, { id: 1, path: "/other" })) },
    { change: ({ tableMetadata }) => void Object.assign(tableMetadata, { owner: "other" }) },
    { readFrom: 99n },
  ];
  const { importInto, ids } = await openOnCluster(t, async (driver, root) => {
    for (const forgery of forgeries)
      await commitRows(t, driver, root, "t", forgery).catch((error: unknown) => refusals.push(error));
    await driver.finish({ failure: { message: "no file", retryable: false } });
  });
  await assert.rejects(importInto("t"), /no file/);
  assert.deepEqual(
    refusals.map(failsWith("InvalidInput")),
    forgeries.map(() => true),
  );
  assert.deepEqual(await ids("t"), [0]);
}, 60_000);

test("an import from another place than the operator allows is refused before a driver starts", async (t) => {
  let drivers = 0;
  const { importInto } = await openOnCluster(t, () => (drivers += 1), ["/database", "s3://data/raw"]);
  await assert.rejects(importInto("t"), failsWith("PermissionDenied"));
  assert.equal(drivers, 0);
}, 60_000);

test("an import that is cancelled adds nothing", async (t) => {
  const cancelling = new AbortController();
  const { importInto, ids } = await openOnCluster(t, async (driver) => {
    await driver.task();
    cancelling.abort();
  });
  await assert.rejects(importInto("t", cancelling.signal), failsWith("Cancelled"));
  assert.deepEqual(await ids("t"), [0]);
}, 60_000);

test("the driver of a new table from texts gets the columns that the command has chosen", async (t) => {
  let given: unknown;
  const { importInto } = await openOnCluster(t, async (driver) => {
    const { task } = await driver.task();
    given = [task?.["format"], task?.["is_new"], task?.["schema"]];
    await driver.finish({ failure: { message: "seen", retryable: false } });
  });
  await assert.rejects(
    importInto("new", undefined, { mode: "create", format: "csv", schema: "AAAA" }),
    /seen/,
  );
  assert.deepEqual(given, ["csv", true, "AAAA"]);
}, 60_000);

test("an import into a new table is refused after another one has filled it", async (t) => {
  const refusals: unknown[] = [];
  const { importInto, ids } = await openOnCluster(t, async (driver, root) => {
    await driver.task();
    const other = clientOf(await createDirectoryBackend({ root, log: silent }));
    await other.upload("insertIntoTable", "new", {}, rows([5]));
    await other.close();
    await driver.task().catch((error: unknown) => refusals.push(error));
    await commitRows(t, driver, root, "new").catch((error: unknown) => refusals.push(error));
    await driver.finish({ failure: { message: "refused", retryable: false } });
  });
  await assert.rejects(importInto("new", undefined, { mode: "create" }), /refused/);
  assert.deepEqual(
    refusals.map(failsWith("ConcurrentModification")),
    refusals.map(() => true),
  );
  assert.equal(refusals.length, 2);
  assert.deepEqual(await ids("new"), [5]);
}, 60_000);

test("an import of which a column was added since its driver read the table is refused", async (t) => {
  const refusals: unknown[] = [];
  const { importInto, ids } = await openOnCluster(t, async (driver, root) => {
    const other = clientOf(await createDirectoryBackend({ root, log: silent }));
    await other.call("alterTableAddColumns", "t", {
      newColumns: [{ name: "more", expression: "nullif(id, id)" }],
    });
    await other.close();
    await commitRows(t, driver, root, "t", { readFrom: 1n }).catch((error: unknown) => refusals.push(error));
    await driver.finish({ failure: { message: "refused", retryable: false } });
  });
  await assert.rejects(importInto("t"), /refused/);
  assert.match(String(refusals[0]), /the columns of the table have changed meanwhile/);
  assert.deepEqual(await ids("t"), [0]);
}, 60_000);

test("an import whose driver fails after its commit has succeeded", async (t) => {
  const { importInto, ids } = await openOnCluster(t, async (driver, root) => {
    await commitRows(t, driver, root, "t");
    await driver.finish({ failure: { message: "the answer was lost", retryable: true } });
  });
  assert.deepEqual(await importInto("t"), { rows: 2, version: 2 });
  assert.deepEqual(await ids("t"), [0, 7, 8]);
}, 60_000);

test("a driver commits nothing after the cancellation of its job", async (t) => {
  const cancelling = new AbortController();
  let refused: unknown;
  const { importInto, isCancelled, ids } = await openOnCluster(t, async (driver, root) => {
    await driver.task();
    cancelling.abort();
    await until(() => isCancelled(driver.jobId));
    refused = await commitRows(t, driver, root, "t").catch((error: unknown) => error);
  });
  await assert.rejects(importInto("t", cancelling.signal), failsWith("Cancelled"));
  await until(async () => refused !== undefined);
  assert.ok(failsWith("Cancelled")(refused) || failsWith("Unauthenticated")(refused));
  assert.deepEqual(await ids("t"), [0]);
}, 60_000);

const LOCATIONS = ["/data", "/data/raw", "s3://bucket/raw"];

test.each([
  ["/data/a.parquet", "/data"],
  ["/data", "/data"],
  ["/data/raw/2026/*.parquet", "/data/raw"],
  ["s3://bucket/raw/**/part-*.parquet", "s3://bucket/raw"],
])("finds the closest location that allows %s", (source, location) => {
  assert.equal(allowedLocation(LOCATIONS, source), location);
});

test.each([
  "/database/a.parquet",
  "/",
  "/data*/a.parquet",
  "/etc/passwd",
  "s3://bucket/rawer/a.parquet",
  "s3://other/raw/a.parquet",
  "s3://bucket/*",
])("refuses %s outside of all locations", (source) => {
  assert.throws(
    () => allowedLocation(LOCATIONS, source),
    failsWith(source === "/" ? "InvalidInput" : "PermissionDenied"),
  );
});

test.each([
  "data/a.parquet",
  "/data/../etc/passwd",
  "/data/./a",
  "/data//a",
  "/data/raw/",
  "s3://bucket/raw/%2e%2e/a",
  "s3://bucket/raw/a?versionId=1",
  "gs://bucket/raw/a.parquet",
  "file:///data/a.parquet",
  "/data/a\nb",
])("refuses %j, which names no place or names it in another way", (source) => {
  assert.throws(() => allowedLocation(LOCATIONS, source), failsWith("InvalidInput"));
});
