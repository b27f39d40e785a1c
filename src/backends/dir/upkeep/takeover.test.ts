import assert from "node:assert/strict";
import { type TestContext, test } from "vitest";
import { openClient, silent, temporaryDirectory } from "../../../../test/fixtures/dir/directory-backend.ts";
import { rows } from "../../../../test/fixtures/dir/rows.ts";
import { findVersions } from "../format/versions/version-files.ts";
import { openDirectory } from "../open-directory.ts";
import type { DirContext } from "../operations/context.ts";
import { requireTable } from "../operations/tables/find-table.ts";
import { datasetOf } from "../operations/tables/open-data.ts";
import type { FencedLease } from "../ownership/fenced-lease.ts";
import { type ActiveTable, createActivity, UPKEEP_TIMES } from "./activity.ts";
import { createDirectoryTables } from "./directory-tables.ts";
import { createUpkeepLeases, type UpkeepLeases } from "./lease.ts";
import { optimizeTables } from "./optimize-now.ts";
import { DEFAULT_POLICY } from "./policy.ts";
import { type TendContext, tend } from "./tend.ts";

/** A table `t` of many fragments and versions, and two processes whose storage has a clock of its own. */
async function openTable(t: TestContext) {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  await client.upload("createTable", "t", {}, rows([0]));
  for (let id = 1; id <= 20; id++) await client.upload("insertIntoTable", "t", {}, rows([id]));
  const { context, close } = await openDirectory({ root, log: silent });
  t.onTestFinished(close);
  let ahead = 0;
  const clock = { now: async () => Date.now() + ahead };
  const leasesOf = () => createUpkeepLeases(context.layout.baseKey, context.store, clock);
  const [first, second] = [leasesOf(), leasesOf()];
  let taken: FencedLease | undefined;
  t.onTestFinished(() => taken?.abandon());
  const slow: DirContext = {
    ...context,
    engine: {
      ...context.engine,
      // While the first process compacts, its lease expires, and the second takes over.
      async acquire(...args) {
        const lease = await context.engine.acquire(...args);
        ahead += 61_000;
        taken ??= await second.acquire("t.lance");
        return lease;
      },
    },
  };
  const dataset = datasetOf(context, await requireTable(context, { id: ["t"] }));
  return {
    context,
    slow,
    first,
    second,
    versions: async () => (await findVersions(dataset)).length,
    release: () => taken?.release(),
  };
}

/** Everything that a process needs to look after a table, whose versions may be pruned at any age. */
function tendingOf(context: DirContext, leases: UpkeepLeases): TendContext {
  return {
    tables: createDirectoryTables(context, leases),
    policy: { ...DEFAULT_POLICY, retentionMs: 0 },
    times: { ...UPKEEP_TIMES, minAgeMs: 0, replacedMs: 0 },
    log: silent,
    signal: new AbortController().signal,
    onRun: () => {},
    onMiss: (reason) => assert.fail(reason),
  };
}

function activeTable(): ActiveTable {
  const activity = createActivity(UPKEEP_TIMES);
  activity.note(["t"], 0);
  return activity.takeDue(UPKEEP_TIMES.waitMs)[0] as ActiveTable;
}

test("a process that loses its lease while it compacts does not prune; its successor does", async (t) => {
  const { context, slow, first, second, versions, release } = await openTable(t);
  const before = await versions();
  await tend(tendingOf(slow, first), activeTable(), () => {});
  assert.ok((await versions()) > before);
  await release();
  await tend(tendingOf(context, second), activeTable(), () => {});
  assert.equal(await versions(), 1);
});

test("the command that loses its lease while it compacts says so and does not prune", async (t) => {
  const { slow, first, versions } = await openTable(t);
  const before = await versions();
  for await (const result of optimizeTables(slow, { tables: [["t"]], leases: first, waitMs: 0 })) {
    assert.deepEqual(result, {
      table: ["t"],
      outcome: "failed",
      reason: "another process has taken the table over",
    });
  }
  assert.ok((await versions()) > before);
});
