import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { type TestContext, test } from "vitest";
import {
  failsWith,
  openClient,
  silent,
  temporaryDirectory,
} from "../../../../../test/fixtures/dir/directory-backend.ts";
import { idsOf, rows } from "../../../../../test/fixtures/dir/rows.ts";
import { beginCall } from "../../../../../test/support/caller.ts";
import { LanceNamespaceService } from "../../../../gen/lance/namespace/v1/service_pb.ts";
import { WORK_DIRECTORY } from "../../batch/work-notes.ts";
import { engineCall } from "../../engine/failures/errors.ts";
import { keyIn, listNames } from "../../format/storage.ts";
import { openDirectory } from "../../open-directory.ts";
import { THIS_PROCESS } from "../../ownership/owner.ts";
import { requireTable } from "../tables/find-table.ts";
import { duringWork } from "../tables/long-work.ts";
import { withData } from "../tables/open-data.ts";
import { createManagedVersionOperations } from "./managed-versions.ts";

const method = LanceNamespaceService.method;
const FROM_2 = [{ startVersion: 2n, endVersion: -1n }];

/** Opens a table with the row 1 in its first version, and the row 2 in its second one. */
async function openTable(t: TestContext) {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  await client.upload("createTable", "t", {}, rows([1]));
  await client.upload("insertIntoTable", "t", {}, rows([2]));
  const { context, close } = await openDirectory({ root, log: silent });
  t.onTestFinished(close);
  const operations = createManagedVersionOperations(context);
  const { location } = await requireTable(context, { id: ["t"] });
  return {
    client,
    context,
    location,
    /** Deletes the versions from the second one on, alone or as a batch. */
    deleteBy: {
      batchDeleteTableVersions: async () => {
        const request = create(method.batchDeleteTableVersions.input, { ranges: FROM_2 });
        await operations.batchDeleteTableVersions(
          request,
          beginCall(method.batchDeleteTableVersions, { id: ["t"] }),
        );
      },
      batchCommitTables: async () => {
        const request = create(method.batchCommitTables.input, {
          operations: [{ operation: { case: "deleteTableVersions", value: { id: ["t"], ranges: FROM_2 } } }],
        });
        await operations.batchCommitTables(request, beginCall(method.batchCommitTables, { id: [] }));
      },
    },
    versions: async () =>
      (await client.call("listTableVersions", "t")).versions.map(({ version }) => Number(version)),
    ids: async () => idsOf(await client.query("t")).sort(),
  };
}

for (const by of ["batchDeleteTableVersions", "batchCommitTables"] as const) {
  test(`work that has read the newest version does not bring its rows back after their deletion by ${by}`, async (t) => {
    const { context, location, deleteBy, ids, versions } = await openTable(t);
    const [opened, goesOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const work = duringWork(context, { id: ["t"], location }, (table) =>
      withData(context, table, {}, async (native) => {
        assert.equal(await engineCall(() => native.version()), 2);
        opened.resolve();
        await goesOn.promise;
        await engineCall(() => native.optimize(0));
      }),
    );
    await opened.promise;
    const deleted = deleteBy[by]();
    // Without the wait, the deletion would be over long before.
    await Promise.race([deleted, sleep(300)]);
    goesOn.resolve();
    await work;
    await deleted;
    assert.deepEqual(await ids(), [1]);
    assert.equal((await versions()).includes(1), true);
  });
}

test("newest versions stay while another process notes work on the table, and older ones may go", async (t) => {
  const { client, context, location, deleteBy, versions } = await openTable(t);
  const other = { ...THIS_PROCESS, process: "other", kernel: "of another machine" };
  const directory = keyIn(context.layout.baseKey, WORK_DIRECTORY);
  const end = await context.work.begin(location);
  const [name = ""] = await listNames(context.store, directory);
  await context.store.put(
    `${directory}/${name.replace(/-.*/, "-other")}`,
    Buffer.from(JSON.stringify(other)),
  );
  await end();
  for (const attempt of Object.values(deleteBy))
    await assert.rejects(attempt(), failsWith("ConcurrentModification"));
  assert.deepEqual(await versions(), [1, 2]);
  const ranges = [{ startVersion: 1n, endVersion: 2n }];
  const { deletedCount } = await client.call("batchDeleteTableVersions", "t", { ranges });
  assert.equal(deletedCount, 1n);
  assert.deepEqual(await versions(), [2]);
});

test("changes right after a deletion of the newest versions build on the version that is left", async (t) => {
  const { client, ids } = await openTable(t);
  const undo = () => client.call("batchDeleteTableVersions", "t", { ranges: FROM_2 });
  assert.deepEqual(await ids(), [1, 2]);
  await undo();
  await client.upload("insertIntoTable", "t", {}, rows([3]));
  assert.deepEqual(await ids(), [1, 3]);
  await undo();
  await client.call("updateTable", "t", {
    predicate: "true",
    updates: [{ column: "name", expression: "'x'" }],
  });
  assert.deepEqual(await ids(), [1]);
  await undo();
  await client.upload("mergeInsertIntoTable", "t", { on: ["id"], whenNotMatchedInsertAll: true }, rows([4]));
  assert.deepEqual(await ids(), [1, 4]);
  await undo();
  await client.call("alterTableAddColumns", "t", { newColumns: [{ name: "twice", expression: "id * 2" }] });
  assert.deepEqual(await ids(), [1]);
});

test("deletions of newest versions and inserts at the same time leave no row of a deleted version", async (t) => {
  const { client, ids } = await openTable(t);
  for (let round = 0; round < 5; round++) {
    const first = 10 * (round + 1);
    await client.upload("insertIntoTable", "t", {}, rows([first]));
    await Promise.all([
      client.call("batchDeleteTableVersions", "t", { ranges: FROM_2 }),
      client.upload("insertIntoTable", "t", {}, rows([first + 1])),
      client.upload(
        "mergeInsertIntoTable",
        "t",
        { on: ["id"], whenNotMatchedInsertAll: true },
        rows([first + 2]),
      ),
    ]);
    const left = await ids();
    assert.equal(left.includes(first), false, `round ${round} has ${left}`);
  }
});
