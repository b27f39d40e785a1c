import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { type TestContext, test } from "vitest";
import {
  clientOf,
  failsWith,
  silent,
  temporaryDirectory,
} from "../../../../../test/fixtures/dir/directory-backend.ts";
import { rows } from "../../../../../test/fixtures/dir/rows.ts";
import { type StandInJob, startRayStandIn } from "../../../../../test/fixtures/ray/ray-stand-in.ts";
import {
  type SimulatedDriver,
  segmentsOf,
  simulateDriver,
} from "../../../../../test/fixtures/ray/simulated-driver.ts";
import { beginCall } from "../../../../../test/support/caller.ts";
import { until } from "../../../../../test/support/until.ts";
import { DescribeJobRequestSchema, ListJobsRequestSchema } from "../../../../gen/lance/gateway/v1/job_pb.ts";
import { LanceDbService, PrewarmIndexRequestSchema } from "../../../../gen/lance/gateway/v1/lancedb_pb.ts";
import { InsertMode } from "../../../../gen/lance/namespace/v1/data_pb.ts";
import type { Call } from "../../../../namespace/call/call.ts";
import { createDirectoryBackend, type DirectoryBackend } from "../../index.ts";
import { openDirectory } from "../../open-directory.ts";
import { createVendor, type Vendor } from "../../vending/vendor.ts";

const IDS = Array.from({ length: 300 }, (_, id) => id);

type Drive = (driver: SimulatedDriver, fixture: { backend: DirectoryBackend; job: StandInJob }) => unknown;

/** Opens a directory with a table `t`, and with a cluster whose drivers do what `drive` says. */
async function openOnCluster(
  t: TestContext,
  drive: Drive,
  minRows = 0,
  more: { readonly vendor?: Vendor; readonly indexCacheBytes?: number } = {},
) {
  const root = await temporaryDirectory(t);
  let backend: DirectoryBackend | undefined;
  const ray = await startRayStandIn(t, (job) => {
    const own = backend as DirectoryBackend;
    return drive(simulateDriver(own, job), { backend: own, job });
  });
  const cluster = {
    ...{ addresses: [ray.url], gatewayUrl: "http://127.0.0.1:1", minRows, workers: 2 },
    ...{ kinds: ["create_index"], pollMs: [5, 20] as const },
  };
  const open = () => createDirectoryBackend({ root, log: silent, cluster, ...more });
  backend = await open();
  const client = clientOf(backend);
  t.onTestFinished(client.close);
  await client.upload("createTable", "t", {}, rows(IDS));
  const { context, close } = await openDirectory({ root, log: silent });
  t.onTestFinished(close);
  const build = (column = "id", indexType = "BTREE", fields: object = {}) =>
    client.call("createTableIndex", "t", { column, indexType, name: "i", ...fields });
  const listed = async () =>
    (await client.call("listTableIndices", "t", {})).indexes.map(({ indexName, indexType }) => [
      indexName,
      indexType,
    ]);
  const jobs = async () =>
    (await backend?.extensions?.listJobs?.(create(ListJobsRequestSchema), {} as Call))?.jobs ?? [];
  return { ...{ root, backend, ray, client, context, build, listed, jobs }, open };
}

type Opened = Awaited<ReturnType<typeof openOnCluster>>;

/** Makes an index with the embedded engine, and takes it out of the table again; its files remain. */
async function madeIndex({ client, context }: Opened, column: string, indexType: string) {
  const { createIndexBuilds } = await import("./index-build.ts");
  const plan = {
    ...{ location: "t.lance", branch: undefined, column, name: "made", type: indexType },
    fields: { customStopWords: [] } as never,
  };
  await createIndexBuilds(context).build(["t"], plan, new AbortController().signal);
  const segments = await segmentsOf(context, "t", "made");
  await client.call("dropTableIndex", "t", { indexName: "made" });
  return segments;
}

test("a driver gets credentials that add files to the table, and no more", async (t) => {
  const given: unknown[] = [];
  const vendor = createVendor({
    source: {
      issue: async (key, permission) => ({ value: { key, permission }, expiresAt: Number.POSITIVE_INFINITY }),
    },
    most: "manage",
  });
  const drive: Drive = async (driver, { job }) => {
    given.push((await driver.task()).storageOptions);
    await driver.finish({ failure: { message: "enough", retryable: false } });
    job.status = "FAILED";
  };
  const { build, root } = await openOnCluster(t, drive, 0, { vendor });
  await assert.rejects(build(), failsWith("InvalidInput"));
  assert.deepEqual(given, [{ key: `${root}/data/t.lance`.slice(1), permission: "write" }]);
});

test("an index that a driver has built is committed by the gateway, with a job and its progress", async (t) => {
  let opened: Opened | undefined;
  const tasks: unknown[] = [];
  const progress: unknown[] = [];
  const fixture = await openOnCluster(t, async (driver, { backend }) => {
    const { kind, uri, storageOptions, task } = await driver.task();
    tasks.push([kind, uri, storageOptions, task]);
    await driver.progress("Phase 1");
    const request = create(DescribeJobRequestSchema, { jobId: driver.jobId });
    const job = await backend.extensions?.describeJob?.(request, {} as Call);
    progress.push([job?.engine, job?.progress?.step]);
    await driver.finish({ result: { segments: await madeIndex(opened as Opened, "id", "BTREE") } });
  });
  opened = fixture;
  await fixture.build();
  assert.deepEqual(await fixture.listed(), [["i", "BTREE"]]);
  const task = { column: "id", name: "i", index_type: "BTREE", is_vector: false, parameters: {}, workers: 2 };
  assert.deepEqual(tasks, [["create_index", `${fixture.root}/data/t.lance`, {}, task]]);
  assert.deepEqual(progress, [["ray", "Phase 1"]]);
  assert.deepEqual(
    (await fixture.jobs()).map(({ state, jobType }) => [state, jobType]),
    [["DONE", "create_index"]],
  );
  const stats = await fixture.client.call("describeTableIndexStats", "t", { indexName: "i" });
  assert.equal(stats.numIndexedRows, 300n);
});

for (const indexType of ["NGRAM", "ZONEMAP", "BLOOMFILTER"]) {
  test(`an index of type ${indexType}, which the engine has no word for, is committed, and can be prewarmed`, async (t) => {
    const column = indexType === "NGRAM" ? "name" : "id";
    let opened: Opened | undefined;
    const fixture = await openOnCluster(t, async (driver) => {
      await driver.task();
      await driver.finish({ result: { segments: await madeIndex(opened as Opened, column, indexType) } });
    });
    opened = fixture;
    await fixture.build(column, indexType);
    assert.deepEqual(await fixture.listed(), [["i", indexType]]);
    const stats = await fixture.client.call("describeTableIndexStats", "t", { indexName: "i" });
    assert.deepEqual([stats.indexType, stats.numIndexedRows], [indexType, 300n]);
    const prewarm = create(PrewarmIndexRequestSchema, { indexName: "i" });
    const call = beginCall(LanceDbService.method.prewarmIndex, { id: ["t"] });
    await fixture.backend.extensions?.prewarmIndex?.(prewarm, call);
  });
}

test("a table below the bound, or with the property, is indexed here", async (t) => {
  const { ray, client, build, listed } = await openOnCluster(t, () => {}, 1_000);
  await build();
  assert.deepEqual(await listed(), [["i", "BTREE"]]);
  const properties = { "lance-gateway.job-engine": "embedded" };
  await client.call("declareTable", "u", { properties });
  assert.equal(ray.jobs.size, 0);
  await assert.rejects(
    client.call("declareTable", "v", { properties: { "lance-gateway.job-engine": "spark" } }),
    failsWith("InvalidInput"),
  );
});

test("the key of a driver is good for its job alone, until it ends", async (t) => {
  const drivers: SimulatedDriver[] = [];
  const { build, client, jobs } = await openOnCluster(t, async (driver) => {
    drivers.push(driver);
    await driver.task();
    await assert.rejects(driver.task("another key"), failsWith("Unauthenticated"));
    if (drivers.length === 2) {
      const [first] = drivers as [SimulatedDriver];
      await assert.rejects(first.task(driver.key), failsWith("Unauthenticated"));
      await assert.rejects(driver.task(first.key), failsWith("Unauthenticated"));
    }
    await driver.finish({ failure: { message: "enough", retryable: false } });
  });
  await assert.rejects(build(), /on Ray: enough/);
  await assert.rejects(build(), /on Ray: enough/);
  for (const driver of drivers) await assert.rejects(driver.task(), failsWith("Unauthenticated"));
  assert.deepEqual(
    (await jobs()).map(({ state }) => state),
    ["FAILED", "FAILED"],
  );
  assert.deepEqual((await client.call("listTableIndices", "t", {})).indexes, []);
});

test("a driver whose key the gateway has not read yet waits for an answer", async (t) => {
  const { build } = await openOnCluster(t, async (driver, { job }) => {
    const shown = job.logs;
    job.logs = "";
    const first = driver.progress("first");
    setTimeout(() => {
      job.logs = shown;
    }, 50);
    await first;
    await driver.finish({ failure: { message: "enough", retryable: false } });
  });
  await assert.rejects(build(), /on Ray: enough/);
});

test("an index that the engine cannot read does not replace one that it can", async (t) => {
  let opened: Opened | undefined;
  let spoil = (segment: Record<string, unknown>): Record<string, unknown> => segment;
  const fixture = await openOnCluster(t, async (driver) => {
    await driver.task();
    const segments = await madeIndex(opened as Opened, "id", "BTREE");
    await driver.finish({ result: { segments: segments.map(spoil) as never } });
  });
  opened = fixture;
  await fixture.build();
  const before = await fixture.client.call("listTableIndices", "t", {});
  const spoils: (typeof spoil)[] = [
    (segment) => ({ ...segment, type_url: "/lance.index.pb.FutureIndexDetails" }),
    (segment) => ({ ...segment, uuid: "00000000-0000-4000-8000-000000000000" }),
    (segment) => ({ ...segment, uuid: "../other" }),
    (segment) => ({ ...segment, files: [{ path: "../../secret", size: 1 }] }),
    (segment) => ({ ...segment, fields: [1] }),
    (segment) => ({ ...segment, fragment_ids: [7] }),
  ];
  for (const each of spoils) {
    spoil = each;
    await assert.rejects(fixture.build("id", "BTREE", { replace: true }));
    assert.deepEqual(await fixture.client.call("listTableIndices", "t", {}), before);
  }
});

test("an index of words that does not fit into the engine's cache is committed, and said to be too large to prewarm", async (t) => {
  let opened: Opened | undefined;
  const drive: Drive = async (driver) => {
    await driver.task();
    await driver.finish({ result: { segments: await madeIndex(opened as Opened, "name", "FTS") } });
  };
  opened = await openOnCluster(t, drive, 0, { indexCacheBytes: 1 });
  const { backend, build, listed } = opened;
  await build("name", "FTS");
  assert.deepEqual(await listed(), [["i", "FTS"]]);
  const request = create(PrewarmIndexRequestSchema, { indexName: "i" });
  const call = beginCall(LanceDbService.method.prewarmIndex, { id: ["t"] });
  await assert.rejects(
    async () => backend.extensions?.prewarmIndex?.(request, call),
    failsWith("PayloadTooLarge"),
  );
});

test("the log of work on a cluster is for owners of the catalog, and its last lines are as many as asked for", async (t) => {
  const fixture = await openOnCluster(t, async (driver, { job }) => {
    await driver.task();
    job.logs += "one\ntwo\nthree\n";
    await driver.finish({ failure: { message: "enough", retryable: false } });
    job.status = "FAILED";
  });
  await assert.rejects(fixture.build(), failsWith("InvalidInput"));
  const [{ jobId = "", engine } = {}] = await fixture.jobs();
  assert.equal(engine, "ray");
  const describe = (logLines: number | undefined, caller: Partial<Call> = {}) =>
    fixture.backend.extensions?.describeJob?.(
      create(DescribeJobRequestSchema, { jobId, logLines }),
      caller as Call,
    );
  assert.equal((await describe(undefined))?.log, undefined);
  assert.equal((await describe(2))?.log, "two\nthree");
  const refusals = [
    [-1, {}, "InvalidInput"],
    [1_001, {}, "InvalidInput"],
    [1, { may: async () => false }, "PermissionDenied"],
  ] as const;
  for (const [lines, caller, name] of refusals)
    await assert.rejects(async () => describe(lines, caller), failsWith(name));
});

test("a build whose rows were compacted meanwhile is refused, and one whose table grew is not", async (t) => {
  let opened: Opened | undefined;
  let meanwhile = async () => {};
  const fixture = await openOnCluster(t, async (driver) => {
    await driver.task();
    const segments = await madeIndex(opened as Opened, "id", "BTREE");
    await meanwhile();
    await driver.finish({ result: { segments } });
  });
  opened = fixture;
  meanwhile = async () => {
    await fixture.client.upload("insertIntoTable", "t", {}, rows([1000]));
  };
  await fixture.build();
  const stats = await fixture.client.call("describeTableIndexStats", "t", { indexName: "i" });
  assert.deepEqual([stats.numIndexedRows, stats.numUnindexedRows], [300n, 1n]);
  meanwhile = async () => {
    await fixture.client.upload("insertIntoTable", "t", { mode: InsertMode.OVERWRITE }, rows([1]));
  };
  await assert.rejects(fixture.build("id", "BTREE", { replace: true }), failsWith("ConcurrentModification"));
});

test("a drop of the table and a cancellation stop the job on Ray", async (t) => {
  const { ray, client, build } = await openOnCluster(t, () => {});
  const building = build();
  await until(() => ray.jobs.size === 1);
  await client.call("dropTable", "t", {});
  await assert.rejects(building, failsWith("Cancelled"));
  await until(() => [...ray.jobs.values()].every(({ status }) => status === "STOPPED"));
});

test("a gateway that restarts follows the run of the former one", async (t) => {
  let opened: Opened | undefined;
  const { promise: mayEnd, resolve: letEnd } = Promise.withResolvers<void>();
  const { promise: works, resolve: noteWork } = Promise.withResolvers<void>();
  let next: DirectoryBackend | undefined;
  const fixture = await openOnCluster(t, async (driver, { job }) => {
    await driver.task();
    const segments = await madeIndex(opened as Opened, "id", "BTREE");
    noteWork();
    await mayEnd;
    await simulateDriver(next as DirectoryBackend, job).finish({ result: { segments } });
  });
  opened = fixture;
  const building = fixture.build();
  building.catch(() => {});
  await works;
  await fixture.backend.close();
  await assert.rejects(building);
  next = await fixture.open();
  const client = clientOf(next);
  t.onTestFinished(client.close);
  letEnd();
  await until(async () => (await client.call("listTableIndices", "t", {})).indexes.length === 1);
  assert.equal(fixture.ray.jobs.size, 1);
}, 30_000);

test("kinds that only a cluster builds are refused without one, and on branches", async (t) => {
  const { build } = await openOnCluster(t, () => {});
  await assert.rejects(build("vector", "IVF_SQ", { branch: "b" }));
  const root = await temporaryDirectory(t);
  const alone = clientOf(await createDirectoryBackend({ root, log: silent }));
  t.onTestFinished(alone.close);
  await alone.upload("createTable", "t", {}, rows([1]));
  for (const [column, indexType] of [
    ["vector", "IVF_SQ"],
    ["id", "RTREE"],
  ] as const) {
    const building = alone.call("createTableIndex", "t", { column, indexType });
    await assert.rejects(building, /Ray cluster/);
    await assert.rejects(building, failsWith("Unsupported"));
  }
});
