import assert from "node:assert/strict";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Field, Int32, Schema, Table, tableToIPC, vectorFromArray } from "apache-arrow";
import { expect, type TestContext, test, vi } from "vitest";
import { table } from "../../../../../test/fixtures/catalog/catalog.ts";
import {
  openClient,
  silent,
  type TestClient,
  temporaryDirectory,
} from "../../../../../test/fixtures/dir/directory-backend.ts";
import { InsertMode } from "../../../../gen/lance/namespace/v1/data_pb.ts";
import { MaterializedViewKind } from "../../../../gen/lance/namespace/v1/view_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { createChanges } from "../../../../runtime/threads/changes.ts";
import { type SharedDatabase, UNSHARED } from "../../../../runtime/threads/sharing.ts";
import { createState } from "../../catalog/state/state.ts";
import { createLocalStore } from "../../format/local/local-store.ts";
import type { ObjectStore } from "../../format/storage.ts";
import type { Job } from "../../jobs/job.ts";
import type { Jobs } from "../../jobs/jobs.ts";
import { createJobStore, JOBS_DIRECTORY } from "../../jobs/store.ts";
import { openDirectory } from "../../open-directory.ts";
import { createViewRegister, startAutoRefresh } from "./auto-refresh.ts";
import { toProperties } from "./definition.ts";

/** Shares of a worker without others. */
const ALONE: SharedDatabase = {
  workers: 1,
  isFirst: true,
  catchesUp: true,
  calls: UNSHARED,
  tableUseMs: UNSHARED,
  catalogVersion: { value: 0, raise() {}, increment: () => 0 },
  tableChanges: createChanges(),
  upstreamWrites: { value: 0, raise() {}, increment: () => 0 },
  commitPorts: () => () => {},
};
const TIMES = { settleMs: 20, waitMs: 200, lookMs: 50 };

const rows = (from: number, to: number) => {
  const ids = Array.from({ length: to - from }, (_, i) => from + i);
  return tableToIPC(new Table({ id: vectorFromArray(ids, new Int32()) }), "stream");
};
const outputSchema = Buffer.from(
  tableToIPC(new Table(new Schema([new Field("id", new Int32(), true)])), "stream"),
).toString("base64");

const open = (t: TestContext, root: string, times = TIMES) => openClient(t, root, { autoRefresh: times });

const createView = (client: TestClient, view: string, sourceQuery: string, options: object = {}) =>
  client.call("createMaterializedView", view, {
    kind: MaterializedViewKind.QUERY,
    sourceQuery,
    outputSchema,
    autoRefresh: true,
    ...options,
  });

const countsOf = (client: TestClient, ...tables: string[]) =>
  Promise.all(tables.map(async (table) => Number((await client.call("countTableRows", table)).count)));

const jobsOf = (root: string) =>
  createJobStore(createLocalStore(), `${root.slice(1)}/data/${JOBS_DIRECTORY}`).list(assert.fail);

test("a view with auto_refresh follows its source, and a view of the view follows, too", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await open(t, root);
  await client.upload("createTable", "t", {}, rows(0, 3));
  await createView(client, "v", "SELECT id FROM t");
  await createView(client, "w", "SELECT id FROM v WHERE id > 0");
  await createView(client, "still", "SELECT id FROM t", { autoRefresh: false });
  await client.upload("insertIntoTable", "t", {}, rows(3, 5));
  await expect.poll(() => countsOf(client, "v", "w", "still")).toEqual([5, 4, 0]);
  await client.call("deleteFromTable", "t", { predicate: "id = 4" });
  await expect.poll(() => countsOf(client, "v", "w", "still")).toEqual([4, 3, 0]);
});

test("a burst of writes is followed by fewer refreshes than writes", async (t) => {
  const root = await temporaryDirectory(t);
  // A busy machine may take longer than the quiet time from one write to the next.
  vi.useFakeTimers({ toFake: ["performance"] });
  t.onTestFinished(() => void vi.useRealTimers());
  const client = await open(t, root, { ...TIMES, settleMs: 300, waitMs: 60_000 });
  await client.upload("createTable", "t", {}, rows(0, 1));
  await createView(client, "v", "SELECT id FROM t");
  for (let i = 1; i < 9; i++) await client.upload("insertIntoTable", "t", {}, rows(i, i + 1));
  vi.advanceTimersByTime(300);
  await expect.poll(() => countsOf(client, "v")).toEqual([9]);
  const refreshes = await jobsOf(root);
  assert.ok(refreshes.length < 8, `${refreshes.length} refreshes`);
});

test("a view that was created without data stays empty until its source changes", async (t) => {
  const root = await temporaryDirectory(t);
  // The process that writes the source would note the write, and may refresh a view that is made right after it.
  const first = await open(t, root, { ...TIMES, settleMs: 600_000, waitMs: 600_000 });
  await first.upload("createTable", "t", {}, rows(0, 3));
  await createView(first, "v", "SELECT id FROM t");
  await first.close();
  const client = await open(t, root);
  await client.upload("createTable", "other", {}, rows(0, 1));
  await createView(client, "seen", "SELECT id FROM other", { withNoData: true });
  await client.upload("insertIntoTable", "other", {}, rows(1, 2));
  await expect.poll(() => countsOf(client, "seen")).toEqual([2]);
  assert.deepEqual(await countsOf(client, "v"), [0]);
});

const CHANGES: Readonly<Record<string, (client: TestClient) => Promise<unknown>>> = {
  "source changed while nobody looked": (client) => client.upload("insertIntoTable", "t", {}, rows(3, 7)),
  "source was created again with the same number of versions": async (client) => {
    await client.call("dropTable", "t");
    await client.upload("createTable", "t", {}, rows(0, 7));
  },
  "rows another refresh replaced without an end": async (client) => {
    await client.upload("insertIntoTable", "t", {}, rows(3, 7));
    await client.call("refreshMaterializedView", "v");
    await expect.poll(() => countsOf(client, "v")).toEqual([7]);
    await client.upload("insertIntoTable", "v", { mode: InsertMode.OVERWRITE }, rows(0, 3));
  },
};

for (const [what, change] of Object.entries(CHANGES))
  test(`the next process refreshes a view whose ${what}`, async (t) => {
    const root = await temporaryDirectory(t);
    const first = await open(t, root, { ...TIMES, settleMs: 600_000, waitMs: 600_000 });
    await first.upload("createTable", "t", {}, rows(0, 3));
    await createView(first, "v", "SELECT id FROM t", { withNoData: false });
    await expect.poll(() => countsOf(first, "v")).toEqual([3]);
    await change(first);
    await first.close();
    const second = await open(t, root);
    await expect.poll(() => countsOf(second, "v")).toEqual([7]);
  });

test("a worker beside the first one leaves such a view to it, and refreshes the view when its source changes", async (t) => {
  const root = await temporaryDirectory(t);
  const first = await open(t, root, { ...TIMES, settleMs: 600_000, waitMs: 600_000 });
  await first.upload("createTable", "t", {}, rows(0, 3));
  await createView(first, "v", "SELECT id FROM t", { withNoData: false });
  await first.upload("createTable", "other", {}, rows(0, 1));
  await createView(first, "seen", "SELECT id FROM other", { withNoData: true });
  await expect.poll(() => countsOf(first, "v")).toEqual([3]);
  await first.upload("insertIntoTable", "t", {}, rows(3, 7));
  await first.close();
  const second = await openClient(t, root, { autoRefresh: TIMES, shared: { ...ALONE, catchesUp: false } });
  await second.upload("insertIntoTable", "other", {}, rows(1, 2));
  await expect.poll(() => countsOf(second, "seen")).toEqual([2]);
  assert.deepEqual(await countsOf(second, "v"), [3]);
  await second.upload("insertIntoTable", "t", {}, rows(7, 8));
  await expect.poll(() => countsOf(second, "v")).toEqual([8]);
});

test("a process refreshes views that another one made, and no view twice at a time", async (t) => {
  const root = await temporaryDirectory(t);
  const [first, second] = [await open(t, root), await open(t, root)];
  await first.upload("createTable", "t", {}, rows(0, 3));
  await createView(first, "v", "SELECT id FROM t");
  await Promise.all([
    first.upload("insertIntoTable", "t", {}, rows(3, 5)),
    second.upload("insertIntoTable", "t", {}, rows(5, 9)),
  ]);
  await expect.poll(() => countsOf(second, "v")).toEqual([9]);
  await first.call("dropTable", "t");
  await second.upload("createTable", "t", {}, rows(0, 2));
  await expect.poll(() => countsOf(first, "v")).toEqual([2]);
});

test("a view whose query cannot be read, and one whose table is damaged, hold up no other views", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await open(t, root);
  await client.upload("createTable", "t", {}, rows(0, 3));
  // The names put both before the view in every order. Another program may give a table any properties.
  const { context, close } = await openDirectory({ root, log: silent });
  const properties = {
    "lance_gateway.view.kind": "query",
    "lance_gateway.view.auto_refresh": "true",
    "lance_gateway.view.output_schema": outputSchema,
    "lance_gateway.view.source_query": "not a query",
  };
  const forged = { objectId: "a", objectType: "table", location: "elsewhere.lance", properties } as const;
  await context.catalog.mutate((draft) => draft.put(forged));
  await close();
  await createView(client, "b", "SELECT id FROM t");
  await createView(client, "v", "SELECT id FROM t");
  const versions = join(root, "data/b.lance/_versions");
  for (const name of await readdir(versions)) await writeFile(join(versions, name), "damage");
  await client.upload("insertIntoTable", "t", {}, rows(3, 5));
  await expect.poll(() => countsOf(client, "v")).toEqual([5]);
  await client.close();
  const second = await open(t, root);
  await second.upload("insertIntoTable", "t", {}, rows(5, 6));
  await expect.poll(() => countsOf(second, "v")).toEqual([6]);
});

for (const [what, part] of [
  ["the record of a refresh", "/.jobs/open/"],
  ["the work of a refresh", "/.work/"],
] as const)
  test(`a view is refreshed later when the storage refuses ${what}`, async (t) => {
    const root = await temporaryDirectory(t);
    const files = createLocalStore();
    let isRefusing = false;
    let refused = 0;
    const refuse = (key: string) => {
      if (!isRefusing || !key.includes(part)) return;
      refused++;
      throw new LanceError("ServiceUnavailable", "the storage does not answer");
    };
    const store: ObjectStore = {
      ...files,
      async put(key, bytes) {
        refuse(key);
        await files.put(key, bytes);
      },
      async putHint(key, bytes) {
        refuse(key);
        await files.putHint(key, bytes);
      },
    };
    // The process that creates the table may refresh the view, and a refresh that waits during the insert would be the last one.
    const first = await open(t, root, { ...TIMES, settleMs: 600_000, waitMs: 600_000 });
    await first.upload("createTable", "t", {}, rows(0, 3));
    await createView(first, "v", "SELECT id FROM t");
    await first.close();
    const storage = { store, root, engineOptions: {} };
    const client = await openClient(t, root, { autoRefresh: TIMES, storage });
    isRefusing = true;
    await client.upload("insertIntoTable", "t", {}, rows(3, 5));
    await expect.poll(() => refused).toBeGreaterThan(1);
    isRefusing = false;
    await expect.poll(() => countsOf(client, "v")).toEqual([5]);
  });

/** Opens the automatic refreshes of a gateway whose jobs do not run. */
async function openLooks(t: TestContext, views: readonly string[], openAt: (look: number) => readonly Job[]) {
  const root = await temporaryDirectory(t);
  const client = await open(t, root, { ...TIMES, settleMs: 600_000, waitMs: 600_000 });
  await client.upload("createTable", "t", {}, rows(0, 3));
  for (const view of views) await createView(client, view, "SELECT id FROM t");
  const { context, close } = await openDirectory({ root, log: silent });
  t.onTestFinished(close);
  const [submitted, looks]: [string[], number[]] = [[], []];
  const jobs: Jobs = {
    ...context.jobs,
    async open() {
      looks.push(submitted.length);
      return [...openAt(looks.length)];
    },
    async submit(job) {
      submitted.push(job.table.join());
      return { ...job, id: "", state: "queued", createdAt: 0, attempts: 1 };
    },
  };
  const refresh = startAutoRefresh({ ...context, jobs }, TIMES, false);
  t.onTestFinished(refresh.close);
  refresh.note(["t"]);
  return { submitted, looks };
}

test("a look at many views reads the jobs that have not ended once", async (t) => {
  const { submitted, looks } = await openLooks(t, ["a", "b", "c"], () => []);
  await expect.poll(() => submitted.sort()).toEqual(["a", "b", "c"]);
  assert.deepEqual(looks, [0]);
});

test("a refresh to an older version that waits is followed by one to the newest", async (t) => {
  const facts = { id: "", kind: "refresh_view", table: ["v"], createdAt: 0, attempts: 1 } as const;
  const older: Job = { ...facts, state: "queued", spec: { sourceVersion: "1" } };
  const { submitted, looks } = await openLooks(t, ["v"], (look) => (look === 1 ? [older] : []));
  await expect.poll(() => submitted).toEqual(["v"]);
  assert.deepEqual(looks, [0, 0]);
});

test("looks for views in many changed tables with as many checks of the catalog as in a few", async () => {
  const names = Array.from({ length: 50 }, (_, i) => `t${i}`);
  const state = createState(names.map((name) => table(name)));
  let checks = 0;
  const catalog = {
    known: () => state,
    read: async () => {
      checks += 1;
      return state;
    },
  };
  const register = createViewRegister(catalog, 0);
  async function checksOf(tables: readonly string[]): Promise<number> {
    checks = 0;
    assert.deepEqual(await register.viewsOf(tables.map((name) => [name])), []);
    return checks;
  }
  assert.equal(await checksOf(names), await checksOf(names.slice(0, 2)));
});

test("forgets views that have gone without a call for them", async () => {
  const definition = {
    sourceQuery: "SELECT * FROM t",
    outputSchema: "",
    withNoData: false,
    autoRefresh: true,
  };
  const view = (name: string) => ({ ...table(name), properties: toProperties(definition) });
  let state = createState([view("v"), view("w")]);
  const register = createViewRegister({ known: () => state, read: async () => state }, 0);
  const names = async () => (await register.viewsOf([[]])).map(({ id }) => id.join("$"));
  assert.deepEqual(await names(), ["v", "w"]);
  state = createState([view("w")]);
  assert.deepEqual(await names(), ["w"]);
});
