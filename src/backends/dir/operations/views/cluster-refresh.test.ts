import assert from "node:assert/strict";
import { cp } from "node:fs/promises";
import type { JsonObject } from "@bufbuild/protobuf";
import { type TestContext, test } from "vitest";
import {
  clientOf,
  failsWith,
  silent,
  temporaryDirectory,
} from "../../../../../test/fixtures/dir/directory-backend.ts";
import { ended, openView, rows } from "../../../../../test/fixtures/dir/views.ts";
import { type Drive, openOnCluster } from "../../../../../test/fixtures/ray/open-on-cluster.ts";
import type { SimulatedDriver } from "../../../../../test/fixtures/ray/simulated-driver.ts";
import { createLocalStore } from "../../format/local/local-store.ts";
import { readVersion } from "../../format/versions/version-files.ts";
import { createDirectoryBackend } from "../../index.ts";
import { REFRESH_VIEW } from "./submit.ts";
import { readState } from "./view-state.ts";

/** Opens a view `v` of the table `t` with the ids 0 to 9, and a gateway with a cluster whose drivers do what `drive` says. */
async function openViewOnCluster(t: TestContext, query: string, drive: Drive, minRows = 0) {
  const { root, client: first, ids } = await openView(t, query);
  const { ray, client } = await openOnCluster(t, root, REFRESH_VIEW, drive, minRows);
  const refresh = async (request: object = {}) => {
    const { jobId } = await client.call("refreshMaterializedView", "v", request);
    const { state, result, error } = await ended(root, jobId);
    return { state, result, error };
  };
  return { root, ray, client, first, refresh, ids };
}

/** Writes rows for the view in a copy of the directory, brings their files to the directory, and returns what a driver reports. */
async function writtenRows(
  t: TestContext,
  driver: SimulatedDriver,
  root: string,
  [from, to]: readonly [number, number],
): Promise<JsonObject> {
  const { task } = await driver.task();
  const copy = await temporaryDirectory(t);
  await cp(root, copy, { recursive: true });
  const client = clientOf(await createDirectoryBackend({ root: copy, log: silent }));
  await client.upload("insertIntoTable", "v", {}, rows(from, to));
  await client.close();
  const store = createLocalStore();
  const place = `${copy}/data/v.lance`;
  const { manifest } = await readVersion({ store, root: store.keyOf(place) });
  await cp(`${place}/data`, `${root}/data/v.lance/data`, { recursive: true });
  const fragments = manifest.fragments.slice(-1).map(({ files, physicalRows }) => ({
    physical_rows: Number(physicalRows),
    files: files.map((file) => ({
      ...{ path: file.path, fields: [...file.fields], column_indices: [...file.columnIndices] },
      ...{ file_major_version: file.fileMajorVersion, file_minor_version: file.fileMinorVersion },
      file_size_bytes: Number(file.fileSizeBytes),
    })),
  }));
  const { source_version = 0, view_version = 0, state = "" } = task ?? {};
  return { fragments, source_version, view_version, state };
}

test("a gateway puts the rows that a driver has written in place of those of the view, with their source", async (t) => {
  const tasks: (JsonObject | undefined)[] = [];
  const query = "SELECT id FROM t WHERE id < 3";
  const opened = await openViewOnCluster(t, query, async (driver, root) => {
    tasks.push((await driver.task()).task);
    await driver.finish({ result: await writtenRows(t, driver, root, [0, 3]) });
  });
  const { root, client, ids, refresh } = opened;
  const { state, result, error } = await refresh({ concurrency: 1 });
  assert.equal(state, "succeeded", error?.message ?? "");
  assert.deepEqual([result?.["mode"], result?.["rows"], result?.["sourceVersion"]], ["full", 3, 1]);
  assert.deepEqual(await ids(), [0, 1, 2]);
  const { columns, filter, source_uri, source_version, workers } = tasks[0] ?? {};
  assert.deepEqual(
    [columns, filter, source_uri, source_version, workers],
    [[{ name: "id", value: "id" }], "id < 3", `${root}/data/t.lance`, 1, 1],
  );
  const store = createLocalStore();
  const { manifest } = await readVersion({ store, root: store.keyOf(`${root}/data/v.lance`) });
  const recorded = readState(manifest);
  assert.deepEqual(
    [recorded?.source, recorded?.sourceVersion, recorded?.rowsVersion, recorded?.query],
    ["t.lance", "1", String(result?.["version"]), query],
  );
  // The next refresh knows these rows, and adds the few others here.
  await client.upload("insertIntoTable", "t", {}, rows(-2, 0));
  assert.deepEqual((await refresh()).result?.["mode"], "incremental");
  assert.deepEqual(await ids(), [-2, -1, 0, 1, 2]);
  assert.equal(tasks.length, 1);
}, 60_000);

test("rows that a driver has written do not replace those of a later refresh", async (t) => {
  const { client, first, ids, refresh } = await openViewOnCluster(
    t,
    "SELECT id FROM t",
    async (driver, root) => {
      const report = await writtenRows(t, driver, root, [0, 3]);
      const { jobId } = await first.call("refreshMaterializedView", "v", {});
      assert.equal((await ended(root, jobId)).state, "succeeded");
      await driver.finish({ result: report });
    },
  );
  const { state, error } = await refresh();
  assert.deepEqual([state, error?.name], ["failed", "ConcurrentModification"]);
  assert.equal((await ids()).length, 10);
  await client.close();
}, 60_000);

test("reports of other files than those of the view are refused", async (t) => {
  type Forge = (report: JsonObject) => unknown;
  const fragmentOf = (report: JsonObject) => (report["fragments"] as JsonObject[])[0] as JsonObject;
  const fileOf = (report: JsonObject) => (fragmentOf(report)["files"] as JsonObject[])[0] as JsonObject;
  const forgeries: readonly Forge[] = [
    (report) => Object.assign(report, { fragments: "none" }),
    (report) => Object.assign(report, { source_version: 99 }),
    (report) => Object.assign(report, { view_version: 0 }),
    (report) => Object.assign(fragmentOf(report), { files: [] }),
    (report) => Object.assign(fragmentOf(report), { physical_rows: -1 }),
    (report) => Object.assign(fileOf(report), { path: "../../t.lance/data/x.lance" }),
    (report) => Object.assign(fileOf(report), { path: "missing.lance" }),
    (report) => Object.assign(fileOf(report), { fields: [7] }),
    (report) => Object.assign(fileOf(report), { file_size_bytes: 1 }),
  ];
  const left = [...forgeries];
  const { ids, refresh } = await openViewOnCluster(t, "SELECT id FROM t", async (driver, root) => {
    const report = await writtenRows(t, driver, root, [0, 3]);
    left.shift()?.(report);
    await driver.finish({ result: report });
  });
  for (const _ of forgeries) assert.equal((await refresh({ full: true })).state, "failed");
  assert.deepEqual(await ids(), []);
}, 120_000);

test("rows of a source that another one has replaced meanwhile are not recorded as those of that one", async (t) => {
  const { client, ids, refresh } = await openViewOnCluster(t, "SELECT id FROM t", async (driver, root) => {
    const report = await writtenRows(t, driver, root, [0, 3]);
    await client.call("dropTable", "t");
    await client.upload("createTable", "t", {}, rows(20, 30));
    await driver.finish({ result: report });
  });
  const { state, error } = await refresh();
  assert.deepEqual([state, error?.name], ["failed", "ConcurrentModification"]);
  assert.deepEqual(await ids(), []);
}, 60_000);

test("a view whose columns others have changed gets those of its query here", async (t) => {
  const { client, ray, refresh, ids } = await openViewOnCluster(t, "SELECT id FROM t", () => {});
  const newColumns = [{ name: "own", expression: "id" }];
  await client.call("alterTableAddColumns", "v", { newColumns });
  await assert.rejects(
    client.call("refreshMaterializedView", "v", { cluster: "ray" }),
    /does not refresh this view: its columns/,
  );
  assert.equal((await refresh()).state, "succeeded");
  assert.equal((await ids()).length, 10);
  assert.equal(ray.jobs.size, 0);
}, 60_000);

for (const [query, reason] of [
  ["SELECT id FROM t LIMIT 3", /LIMIT/],
  ["SELECT cast(sin(id) as int) AS id FROM t", /the function sin/],
  ["SELECT id FROM t WHERE id > random()", /the function random/],
] as const)
  test(`a cluster does not compute ${query}`, async (t) => {
    const { ray, client, refresh } = await openViewOnCluster(t, query, () => {});
    assert.equal((await refresh()).state, "succeeded");
    assert.equal(ray.jobs.size, 0);
    const request = { cluster: "ray", full: true };
    await assert.rejects(client.call("refreshMaterializedView", "v", request), reason);
  });

test("a view of a table below the bound is refreshed here", async (t) => {
  const { ray, refresh, ids } = await openViewOnCluster(t, "SELECT * FROM t", () => {}, 1_000);
  assert.equal((await refresh()).result?.["mode"], "full");
  assert.equal((await ids()).length, 10);
  assert.equal(ray.jobs.size, 0);
});

test("a request for a cluster is refused where there is none", async (t) => {
  const { client } = await openView(t, "SELECT * FROM t");
  const request = { cluster: "ray" };
  await assert.rejects(client.call("refreshMaterializedView", "v", request), failsWith("Unsupported"));
});
