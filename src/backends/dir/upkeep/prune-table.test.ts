import assert from "node:assert/strict";
import { readdir, rm, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "vitest";
import { openClient, silent, temporaryDirectory } from "../../../../test/fixtures/dir/directory-backend.ts";
import { rows } from "../../../../test/fixtures/dir/rows.ts";
import { InsertMode } from "../../../gen/lance/namespace/v1/data_pb.ts";
import { WORK_DIRECTORY } from "../batch/work-notes.ts";
import { findVersions } from "../format/versions/version-files.ts";
import { openDirectory } from "../open-directory.ts";
import { requireTable } from "../operations/tables/find-table.ts";
import { datasetOf, withData } from "../operations/tables/open-data.ts";
import { THIS_PROCESS } from "../ownership/owner.ts";
import { UPKEEP_TIMES } from "./activity.ts";
import { DEFAULT_POLICY } from "./policy.ts";
import { NOT_PRUNED, pruneTable } from "./prune-table.ts";

/** Opens a table with four versions, of which a prune an hour later leaves one. */
async function openFourVersions(t: TestContext) {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  await client.upload("createTable", "t", {}, rows([0]));
  for (let id = 1; id <= 3; id++) await client.upload("insertIntoTable", "t", {}, rows([id]));
  const { context, close } = await openDirectory({ root, log: silent });
  t.onTestFinished(close);
  const table = await requireTable(context, { id: ["t"] });
  const later = { ...context, clock: { now: async () => Date.now() + 3_600_000 } };
  const policy = { ...DEFAULT_POLICY, maxVersions: 1 };
  const { signal } = new AbortController();
  const prune = () => pruneTable(later, table, policy, UPKEEP_TIMES, new Map(), signal);
  const versions = async () =>
    (await findVersions(datasetOf(context, table))).map(({ version }) => Number(version)).sort();
  return { root, context, table, prune, versions };
}

test("a version that a call reads by its number is pruned when the call has ended", async (t) => {
  const { context, table, prune, versions } = await openFourVersions(t);
  await withData(context, table, { version: 2n }, async (native) => {
    await prune();
    assert.deepEqual(await versions(), [2, 4]);
    assert.equal(await native.countRows(), 2);
  });
  await prune();
  assert.deepEqual(await versions(), [4]);
});

test("an old version that was just replaced is left to the calls of other gateways for a while", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  await client.upload("createTable", "t", {}, rows([0]));
  const { context, close } = await openDirectory({ root, log: silent });
  t.onTestFinished(close);
  const table = await requireTable(context, { id: ["t"] });
  const dataset = datasetOf(context, table);
  const [first] = await findVersions(dataset);
  const longAgo = new Date(Date.now() - 30 * 24 * 3_600_000);
  await utimes(`/${first?.key}`, longAgo, longAgo);
  await client.upload("insertIntoTable", "t", { mode: InsertMode.OVERWRITE }, rows([1]));
  const { signal } = new AbortController();
  const pruneIn = async (ms: number) => {
    const clock = { now: async () => Date.now() + ms };
    const pruned = await pruneTable(
      { ...context, clock },
      table,
      DEFAULT_POLICY,
      UPKEEP_TIMES,
      new Map(),
      signal,
    );
    const left = (await findVersions(dataset)).map(({ version }) => Number(version)).sort();
    return { left, hasReplaced: pruned.hasReplaced };
  };
  assert.deepEqual(await pruneIn(0), { left: [1, 2], hasReplaced: true });
  assert.deepEqual(await pruneIn(60_000), { left: [2], hasReplaced: false });
});

test("no version is pruned while another process works on the table, which would miss the changes in between", async (t) => {
  const { root, context, table, prune, versions } = await openFourVersions(t);
  const end = await context.work.begin(table.location);
  const directory = join(root, "data", WORK_DIRECTORY);
  const [own = ""] = await readdir(directory);
  const note = join(directory, own.replace(/^(\w+)-.*/, "$1-other"));
  await writeFile(note, JSON.stringify({ ...THIS_PROCESS, process: "other", kernel: "elsewhere" }));
  assert.deepEqual(await prune(), { ...NOT_PRUNED, hasReplaced: true });
  assert.deepEqual(await versions(), [1, 2, 3, 4]);
  await rm(note);
  // Work of this process, such as the upkeep itself, counts by its handles.
  await prune();
  assert.deepEqual(await versions(), [4]);
  await end();
});
