import assert from "node:assert/strict";
import { setImmediate as nextTurn } from "node:timers/promises";
import { type TestContext, test } from "vitest";
import { failsWith, silent } from "../../../../../test/fixtures/dir/directory-backend.ts";
import { ended, openView, rows } from "../../../../../test/fixtures/dir/views.ts";
import { until } from "../../../../../test/support/until.ts";
import type { Identifier } from "../../../../namespace/identifier.ts";
import { untilAborted } from "../../concurrency/wait.ts";
import type { Job } from "../../jobs/job.ts";
import type { Jobs } from "../../jobs/jobs.ts";
import type { JobWork } from "../../jobs/running-jobs.ts";
import { openDirectory } from "../../open-directory.ts";
import type { DirContext } from "../context.ts";
import { requireTable } from "../tables/find-table.ts";
import { createViewOperations } from "./views.ts";

test("concurrent refreshes add no row twice", async (t) => {
  const { root, client, refresh, ids } = await openView(t, "SELECT id FROM t");
  await refresh();
  await client.upload("insertIntoTable", "t", {}, rows(10, 20));
  const accepted = await Promise.all([1, 2, 3].map(() => client.call("refreshMaterializedView", "v")));
  for (const { jobId } of accepted) await ended(root, jobId);
  assert.deepEqual(
    await ids(),
    Array.from({ length: 20 }, (_, i) => i),
  );
});

/** Opens a further gateway with changed parts, of which only the work of refreshes of `v` runs. */
async function openRefresh(
  t: TestContext,
  root: string,
  change: (context: DirContext) => Partial<DirContext>,
  noteWrite: (view: Identifier) => void = () => {},
): Promise<(signal: AbortSignal) => Promise<unknown>> {
  const { context, close } = await openDirectory({ root, log: silent });
  t.onTestFinished(close);
  const works: JobWork[] = [];
  const jobs: Jobs = { ...context.jobs, define: (_, work) => void works.push(work) };
  createViewOperations({ ...context, jobs, ...change(context) }, () => assert.fail(), noteWrite);
  const { location } = await requireTable(context, { id: ["v"] });
  const facts = { state: "running", createdAt: 0, attempts: 1 } as const;
  const job: Job = { ...facts, id: "", kind: "", table: ["v"], spec: { location } };
  const run = async (signal: AbortSignal) => works[0]?.(job, signal);
  // A job waits no longer than its signal, too.
  return (signal) => untilAborted(run(signal), signal);
}

test("the refresh of a view that was renamed while it waited is noted under the present name", async (t) => {
  const { root, client } = await openView(t, "SELECT id FROM t");
  const noted: Identifier[] = [];
  const run = await openRefresh(
    t,
    root,
    () => ({}),
    (view) => noted.push(view),
  );
  await client.call("renameTable", "v", { newTableName: "w" });
  await run(new AbortController().signal);
  assert.deepEqual(noted, [["w"]]);
});

test("a refresh that was cancelled keeps others waiting until its last write has ended", async (t) => {
  const { root, client, ids } = await openView(t, "SELECT id FROM t");
  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  const writes: Promise<number>[] = [];
  let [asked, admitted] = [0, 0];
  const run = await openRefresh(t, root, (context) => ({
    engine: {
      ...context.engine,
      create(...args) {
        const before = writes.length === 0 ? held : Promise.resolve();
        writes.push(before.then(() => context.engine.create(...args)));
        return writes.at(-1) as Promise<number>;
      },
    },
    createLocks(purpose) {
      const { withLocks } = context.createLocks(purpose);
      return {
        withLocks(names, work) {
          asked++;
          return withLocks(names, () => {
            admitted++;
            return work();
          });
        },
      };
    },
  }));
  const cancelled = new AbortController();
  const first = run(cancelled.signal);
  await until(() => writes.length === 1);
  cancelled.abort();
  await assert.rejects(first, failsWith("Cancelled"));
  await client.call("deleteFromTable", "t", { predicate: "id > 3" });
  const second = run(new AbortController().signal);
  const waits = until(async () => {
    await nextTurn();
    return asked === 2 && admitted === 1;
  });
  await Promise.race([second, waits]);
  release();
  await Promise.all([second, ...writes]);
  assert.deepEqual(await ids(), [0, 1, 2, 3]);
});

test("two gateways that refresh a view at a time add no row twice in any version", async (t) => {
  const { root, client, refresh } = await openView(t, "SELECT id FROM t");
  await refresh();
  await client.upload("insertIntoTable", "t", {}, rows(10, 20));
  const others: unknown[] = [];
  const run = await openRefresh(t, root, ({ engine }) => ({
    engine: {
      ...engine,
      async acquire(path, check) {
        // The rows are known and are about to be written.
        const isNext = /\/(?:v\.lance|\.staging-)/.test(path) && others.length === 0;
        if (isNext) others.push(await refresh());
        return engine.acquire(path, check);
      },
    },
  }));
  await run(new AbortController().signal);
  assert.deepEqual(others, [["incremental", 10]]);
  const { versions } = await client.call("listTableVersions", "v");
  const counts = versions.map(({ version }) => client.call("countTableRows", "v", { version }));
  for (const { count } of await Promise.all(counts)) assert.ok(count <= 20n, String(count));
});

test("a full refresh that was overtaken by another keeps the newer rows in every version", async (t) => {
  const { root, client, refresh } = await openView(t, "SELECT id FROM t");
  const others: unknown[] = [];
  const run = await openRefresh(t, root, ({ engine }) => ({
    engine: {
      ...engine,
      async create(...args) {
        // The rows are known and are about to be written.
        if (others.length === 0) {
          await client.upload("insertIntoTable", "t", {}, rows(10, 20));
          others.push(await refresh());
        }
        return engine.create(...args);
      },
    },
  }));
  await run(new AbortController().signal);
  assert.deepEqual(others, [["full", 20]]);
  const { versions } = await client.call("listTableVersions", "v");
  const counts = versions.map(({ version }) => client.call("countTableRows", "v", { version }));
  assert.deepEqual(new Set((await Promise.all(counts)).map(({ count }) => count)), new Set([20n, 0n]));
});
