import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { cp } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { type TestContext, test } from "vitest";
import {
  clientOf,
  failsWith,
  silent,
  type TestClient,
  temporaryDirectory,
} from "../../../../test/fixtures/dir/directory-backend.ts";
import { idsOf, rows } from "../../../../test/fixtures/dir/rows.ts";
import { startRayStandIn } from "../../../../test/fixtures/ray/ray-stand-in.ts";
import { type SimulatedDriver, simulateDriver } from "../../../../test/fixtures/ray/simulated-driver.ts";
import { until } from "../../../../test/support/until.ts";
import type { Manifest } from "../../../gen/lance/format/table_pb.ts";
import { type DatasetRef, manifestName } from "../format/dataset.ts";
import { copyMessage } from "../format/files/manifest.ts";
import { buildManifestFile, readSection } from "../format/files/manifest-file.ts";
import { createLocalStore } from "../format/local/local-store.ts";
import { readTransactionMessage } from "../format/versions/transaction-records.ts";
import { latestVersion, readVersion } from "../format/versions/version-files.ts";
import { createDirectoryBackend, type DirectoryBackend } from "../index.ts";
import { openDirectory } from "../open-directory.ts";
import { compactElsewhere } from "../operations/jobs/cluster-compaction.ts";
import { requireTable } from "../operations/tables/find-table.ts";
import { UPKEEP_TIMES, type UpkeepTimes } from "./activity.ts";
import { optimizeTable } from "./optimize.ts";
import type { UpkeepOptions } from "./upkeep.ts";

const QUICK = { times: { ...UPKEEP_TIMES, settleMs: 20, waitMs: 100, quietMs: 50, busyMs: 20, retryMs: 20 } };

const TABLE = { id: ["t"], location: "t.lance" };

/** Opens a directory with a table `t` of several fragments, and with a cluster whose drivers do what `drive` says. */
async function openOnCluster(
  t: TestContext,
  drive: (driver: SimulatedDriver, root: string) => unknown,
  upkeep: UpkeepOptions | undefined = undefined,
  afterCreate: (client: TestClient) => Promise<void> = async () => {},
) {
  const root = await temporaryDirectory(t);
  let backend: DirectoryBackend | undefined;
  const filled = Promise.withResolvers<void>();
  const ray = await startRayStandIn(t, async (job) => {
    // Upkeep may begin between two insertions, which a driver of this test cannot carry over.
    await filled.promise;
    await drive(simulateDriver(backend as DirectoryBackend, job), root);
  });
  const own = { minRows: 0, workers: 2, kinds: ["compact_table"], pollMs: [5, 20] as const };
  const cluster = { addresses: [ray.url], gatewayUrl: "http://127.0.0.1:1", ...own };
  backend = await createDirectoryBackend({ root, log: silent, cluster, upkeep });
  const client = clientOf(backend);
  t.onTestFinished(client.close);
  const properties = { "lance-gateway.upkeep.unindexed-rows": "1" };
  await client.upload("createTable", "t", { properties }, rows([0]));
  await afterCreate(client);
  for (let id = 1; id <= 5; id++) await client.upload("insertIntoTable", "t", {}, rows([id]));
  filled.resolve();
  const ids = async () => idsOf(await client.query("t", { k: 100n })).sort();
  const fragments = async () => (await client.call("getTableStats", "t")).fragmentStats?.numFragments;
  return { root, client, cluster, ids, fragments };
}

/** Changes a copy of the directory, and brings the new versions of the table to it as staged ones, as a driver does. */
async function changeAside(
  t: TestContext,
  driver: SimulatedDriver,
  root: string,
  change: (copy: string) => Promise<unknown>,
): Promise<void> {
  const copy = await temporaryDirectory(t);
  await cp(root, copy, { recursive: true });
  const [from, to] = [copy, root].map((each) => `${each}/data/t.lance`) as [string, string];
  const store = createLocalStore();
  const aside = { store, root: store.keyOf(from) };
  const newest = async () => (await latestVersion(aside))?.version ?? 0n;
  const before = await newest();
  await change(copy);
  const after = await newest();
  for (const part of ["data", "_transactions"])
    await cp(`${from}/${part}`, `${to}/${part}`, { recursive: true });
  for (let version = before + 1n; version <= after; version++) {
    const name = manifestName(version, "V2");
    await cp(`${from}/_versions/${name}`, `${to}/_versions/${name}-staged`);
    await driver.commit(version, `${to}/_versions/${name}-staged`, await rewriteOf(aside, version, before));
  }
}

/** Returns what a version has rewritten of an earlier one, as a driver says it. */
async function rewriteOf(dataset: DatasetRef, version: bigint, read: bigint) {
  const { operation } = (await readTransactionMessage(dataset, await readVersion(dataset, version))) ?? {};
  if (operation?.case !== "rewrite") return undefined;
  const groups = operation.value.groups.map((group) => ({
    fragmentIds: group.oldFragments.map(({ id }) => id),
  }));
  return { readVersion: read, groups };
}

async function compact(root: string): Promise<void> {
  const { context, close } = await openDirectory({ root, log: silent });
  await optimizeTable(context, await requireTable(context, TABLE), "join", new AbortController().signal);
  await close();
}

/** Returns a compaction whose last version has something else changed, too. */
function forged(change: (manifest: Manifest) => void): (copy: string) => Promise<void> {
  return async (copy) => {
    await compact(copy);
    const store = createLocalStore();
    const dataset = { store, root: store.keyOf(`${copy}/data/t.lance`) };
    const file = await readVersion(dataset);
    const transaction = await readSection(file, file.manifest.transactionSection ?? 0n);
    const changed = Object.assign(copyMessage(file.manifest), {
      ...{ indexSection: undefined, transactionSection: 0n },
    });
    change(changed);
    const bytes = buildManifestFile(new Uint8Array(), transaction, changed, file.signature);
    await dataset.store.put(file.key, bytes);
  };
}

const FORGERIES = [
  append,
  forged(({ fields }) => {
    for (const field of fields) field.name += "2";
  }),
  forged(({ config }) => {
    config["lance.auto_cleanup.interval"] = "1";
  }),
];

async function append(root: string): Promise<void> {
  const client = clientOf(await createDirectoryBackend({ root, log: silent }));
  await client.upload("insertIntoTable", "t", {}, rows([7]));
  await client.close();
}

const IDS = [0, 1, 2, 3, 4, 5];

test("upkeep has a cluster join fragments, and publishes the versions of its driver", async (t) => {
  const notes: boolean[] = [];
  const { ids, fragments } = await openOnCluster(
    t,
    async (driver, root) => {
      assert.equal((await driver.task()).kind, "compact_table");
      notes.push(existsSync(`${root}/data/.upkeep/t.lance/optimized`));
      await changeAside(t, driver, root, compact);
      await driver.finish({ result: { fragments_removed: 6, fragments_added: 1 } });
    },
    QUICK,
  );
  await until(async () => (await fragments()) === 1n);
  assert.deepEqual(await ids(), IDS);
  assert.deepEqual(notes, [true], "a gateway that takes the job over goes on with the upkeep at once");
}, 60_000);

/** Opens a directory like {@link openOnCluster}, and inserts rows all the time but while a driver commits. */
async function insertBesideCluster(
  t: TestContext,
  times: UpkeepTimes,
  afterCreate?: (client: TestClient) => Promise<void>,
) {
  const [started, ended]: [number[], number[]] = [[], []];
  let isCommitting = false;
  let inserted: Promise<unknown> = Promise.resolve();
  const drive = async (driver: SimulatedDriver, root: string) => {
    started.push(performance.now());
    if (started.length > 1) return;
    await driver.task();
    isCommitting = true;
    await inserted;
    await changeAside(t, driver, root, compact);
    ended.push(performance.now());
    await driver.finish({ result: { fragments_removed: 6, fragments_added: 1 } });
    isCommitting = false;
  };
  const { client } = await openOnCluster(t, drive, { times }, afterCreate);
  await until(() => ended.length > 0);
  const insertUntil = async (isDone: () => boolean | Promise<boolean>) => {
    for (let id = 6; !(await isDone()); id++) {
      if (!isCommitting) inserted = client.upload("insertIntoTable", "t", {}, rows([id]));
      await inserted;
      await sleep(20);
    }
  };
  return { client, started, ended, insertUntil };
}

test("a cluster that has joined fragments rests before the next time, however many rows arrive", async (t) => {
  const times = { ...QUICK.times, clusterRestMs: 1_500 };
  const { started, ended, insertUntil } = await insertBesideCluster(t, times);
  await insertUntil(() => started.length > 1);
  const rest = (started[1] ?? 0) - (ended[0] ?? 0);
  assert.ok(rest >= times.clusterRestMs, `the cluster began again after ${rest} ms`);
}, 60_000);

test("work on indices follows that of a cluster, even while rows arrive", async (t) => {
  const { client, started, insertUntil } = await insertBesideCluster(t, QUICK.times, async (created) => {
    await created.call("createTableScalarIndex", "t", { column: "id", indexType: "BTREE", name: "by_id" });
  });
  const stats = () => client.call("describeTableIndexStats", "t", { indexName: "by_id" });
  await insertUntil(async () => ((await stats()).numIndexedRows ?? 0n) >= 6n);
  assert.equal(started.length, 1);
}, 60_000);

test("upkeep looks after other tables while a cluster joins the fragments of one", async (t) => {
  const { client, ids, fragments } = await openOnCluster(
    t,
    async (driver, root) => {
      await driver.task();
      const properties = { "lance-gateway.job-engine": "embedded" };
      await client.upload("createTable", "other", { properties }, rows([0]));
      for (let id = 1; id <= 5; id++) await client.upload("insertIntoTable", "other", {}, rows([id]));
      const stats = async () => (await client.call("getTableStats", "other")).fragmentStats?.numFragments;
      await until(async () => (await stats()) === 1n);
      await changeAside(t, driver, root, compact);
      await driver.finish({ result: { fragments_removed: 6, fragments_added: 1 } });
    },
    { ...QUICK, concurrency: 1 },
  );
  await until(async () => (await fragments()) === 1n);
  assert.deepEqual(await ids(), IDS);
}, 60_000);

test("a command leaves a compaction to a gateway, whose driver commits nothing else", async (t) => {
  const refusals: unknown[] = [];
  const { root, ids, fragments, cluster } = await openOnCluster(t, async (driver, place) => {
    await driver.task();
    for (const forge of FORGERIES)
      await changeAside(t, driver, place, forge).catch((error: unknown) => refusals.push(error));
    await changeAside(t, driver, place, compact);
    await driver.finish({ result: { fragments_removed: 6, fragments_added: 1 } });
  });
  const { context, close } = await openDirectory({ root, log: silent });
  t.onTestFinished(close);
  await assert.rejects(compactElsewhere(context, TABLE, 0), failsWith("ServiceUnavailable"));
  const compacting = compactElsewhere(context, TABLE, 60_000);
  await until(async () => (await context.jobs.open()).length > 0);
  // A gateway looks for such jobs when it starts, and then every 15 seconds.
  const next = await createDirectoryBackend({ root, log: silent, cluster });
  t.onTestFinished(next.close);
  assert.deepEqual(await compacting, { fragmentsRemoved: 6, fragmentsAdded: 1 });
  assert.deepEqual(
    refusals.map(failsWith("InvalidInput")),
    FORGERIES.map(() => true),
  );
  assert.deepEqual([await ids(), await fragments()], [IDS, 1n]);
}, 60_000);

test("a gateway without a cluster leaves a compaction to one that has it, and ends one that was cancelled", async (t) => {
  const { root, cluster } = await openOnCluster(t, async (driver, place) => {
    await driver.task();
    await changeAside(t, driver, place, compact);
    await driver.finish({ result: { fragments_removed: 6, fragments_added: 1 } });
  });
  const { context, close } = await openDirectory({ root, log: silent });
  t.onTestFinished(close);
  const open = async () => (await context.jobs.open()).length;
  const without = async () => {
    const gateway = await createDirectoryBackend({ root, log: silent });
    t.onTestFinished(gateway.close);
  };
  await assert.rejects(compactElsewhere(context, TABLE, 0), failsWith("ServiceUnavailable"));
  assert.equal(await open(), 1);
  await without();
  await until(async () => (await open()) === 0);
  const compacting = compactElsewhere(context, TABLE, 60_000);
  compacting.catch(() => {});
  await until(async () => (await open()) === 1);
  await without();
  // It looks for such jobs at once.
  await sleep(500);
  assert.equal(await open(), 1);
  const next = await createDirectoryBackend({ root, log: silent, cluster });
  t.onTestFinished(next.close);
  assert.deepEqual(await compacting, { fragmentsRemoved: 6, fragmentsAdded: 1 });
}, 60_000);
