import assert from "node:assert/strict";
import { setTimeout as sleep, setImmediate as turn } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { expect, type TestContext, test } from "vitest";
import { stageNext } from "../../../../test/fixtures/dir/batch.ts";
import {
  failsWith,
  openClient,
  silent,
  temporaryDirectory,
} from "../../../../test/fixtures/dir/directory-backend.ts";
import { rows } from "../../../../test/fixtures/dir/rows.ts";
import { beginCall } from "../../../../test/support/caller.ts";
import { LanceNamespaceService } from "../../../gen/lance/namespace/v1/service_pb.ts";
import { engineCall } from "../engine/failures/errors.ts";
import type { DatasetRef } from "../format/dataset.ts";
import type { ObjectStore } from "../format/storage.ts";
import { openDirectory } from "../open-directory.ts";
import type { DirContext } from "../operations/context.ts";
import { requireTable } from "../operations/tables/find-table.ts";
import { duringWork } from "../operations/tables/long-work.ts";
import { datasetOf, withData } from "../operations/tables/open-data.ts";
import { createManagedVersionOperations } from "../operations/versions/managed-versions.ts";

/** Opens tables `a` and `b`, and a batch with two versions of `a` that another writer of `b` has refused. */
async function openTables(t: TestContext) {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  for (const name of ["a", "b"]) await client.upload("createTable", name, {}, rows([1]));
  const { context, close } = await openDirectory({ root, log: silent });
  t.onTestFinished(close);
  const { store } = context;
  const tables = await Promise.all(["a", "b"].map((name) => requireTable(context, { id: [name] })));
  const [a, b] = tables.map((table) => datasetOf(context, table)) as [DatasetRef, DatasetRef];
  const staged = [await stageNext(a, "x"), await stageNext(a, "y", 2n), await stageNext(b, "x")];
  const method = LanceNamespaceService.method.batchCommitTables;
  const creations = staged.map(({ version, manifestPath }, i) => ({
    operation: {
      case: "createTableVersion",
      value: { id: [i < 2 ? "a" : "b"], version, manifestPath },
    },
  }));
  return {
    context,
    location: tables[0]?.location as string,
    /** Commits the batch, behind other operations. @param happens is called when readers see the versions of `a` */
    refused(happens: () => Promise<void>, before: object[] = []) {
      const key = staged[2]?.key as string;
      const hooked: ObjectStore = {
        ...store,
        async putIfAbsent(each, ...rest) {
          if (each === key) {
            await happens();
            await store.putIfAbsent(key, Buffer.from("of another writer"));
          }
          return store.putIfAbsent(each, ...rest);
        },
      };
      const { batchCommitTables } = createManagedVersionOperations({ ...context, store: hooked });
      const request = create(method.input, { operations: [...before, ...creations] as never });
      return batchCommitTables(request, beginCall(method, { id: [] }));
    },
    versions: async () =>
      (await client.call("listTableVersions", "a")).versions.map(({ version }) => Number(version)),
  };
}

test("a version of a refused batch that a running change has read is not taken back before the change ends", async (t) => {
  const { context, location, refused, versions } = await openTables(t);
  const [opened, goesOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let work: Promise<void> | undefined;
  const batch = refused(async () => {
    work = duringWork(context, { id: ["a"], location }, (table) =>
      withData(context, table, {}, async (native) => {
        assert.equal(await engineCall(() => native.version()), 3);
        opened.resolve();
        await goesOn.promise;
        await engineCall(() => native.delete("id = 1"));
      }),
    );
    await opened.promise;
  });
  const failed = assert.rejects(batch, failsWith("ConcurrentModification"));
  await opened.promise;
  // Without the wait, the version would be gone long before.
  await Promise.race([failed, sleep(300)]);
  goesOn.resolve();
  await work;
  await failed;
  assert.deepEqual(await versions(), [1, 2, 3, 4]);
});

test("a change that waits while versions of a refused batch are taken back finds all of them gone", async (t) => {
  const { context, location, refused, versions } = await openTables(t);
  const [runs, ends] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let running: Promise<void> | undefined;
  const batch = refused(async () => {
    running = context.histories.pass("a", () => {
      runs.resolve();
      return ends.promise;
    });
    await runs.promise;
  });
  const failed = assert.rejects(batch, failsWith("ConcurrentModification"));
  await runs.promise;
  await expect.poll(() => isClosed(context, "a")).toBe(true);
  const found = duringWork(context, { id: ["a"], location }, (table) =>
    withData(context, table, {}, (native) => engineCall(() => native.version())),
  );
  ends.resolve();
  await Promise.all([running, failed]);
  assert.equal(await found, 1);
  assert.deepEqual(await versions(), [1]);
});

/** Whether changes of a table wait at its gate. */
async function isClosed({ histories }: DirContext, table: string): Promise<boolean> {
  let passes = false;
  void histories.pass(table, async () => {
    passes = true;
  });
  await turn();
  return !passes;
}

test("a refused batch that also deletes the newest version of a table takes its version of that table back", async (t) => {
  const { refused, versions } = await openTables(t);
  const ranges = [{ startVersion: 2n, endVersion: -1n }];
  const deletion = { operation: { case: "deleteTableVersions", value: { id: ["a"], ranges } } };
  await assert.rejects(
    refused(async () => {}, [deletion]),
    failsWith("ConcurrentModification"),
  );
  assert.deepEqual(await versions(), [1]);
});
