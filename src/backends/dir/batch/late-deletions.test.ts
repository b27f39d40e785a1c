import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { type TestContext, test } from "vitest";
import {
  failsWith,
  openClient,
  silent,
  temporaryDirectory,
} from "../../../../test/fixtures/dir/directory-backend.ts";
import { idsOf, rows } from "../../../../test/fixtures/dir/rows.ts";
import { beginCall } from "../../../../test/support/caller.ts";
import { LanceNamespaceService } from "../../../gen/lance/namespace/v1/service_pb.ts";
import { LanceError } from "../../../namespace/errors.ts";
import type { ObjectStore } from "../format/storage.ts";
import { openDirectory } from "../open-directory.ts";
import { createManagedVersionOperations } from "../operations/versions/managed-versions.ts";
import { resolveAbandoned } from "./resolve.ts";

/** Commits a batch that deletes the versions of a table from the second one on; the storage fails at a deletion. */
async function cutOff(t: TestContext, failsAt: number) {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  await client.upload("createTable", "t", {}, rows([1]));
  for (const id of [2, 3]) await client.upload("insertIntoTable", "t", {}, rows([id]));
  const { context, close } = await openDirectory({ root, log: silent });
  t.onTestFinished(close);
  let deletions = 0;
  const store: ObjectStore = {
    ...context.store,
    async deleteTagged(...args) {
      if (++deletions === failsAt) throw new LanceError("ServiceUnavailable", "the storage fails");
      return context.store.deleteTagged(...args);
    },
  };
  const direct = { managedVersioning: false, clientStorageOptions: {} };
  const { batchCommitTables } = createManagedVersionOperations({ ...context, ...direct, store });
  const method = LanceNamespaceService.method.batchCommitTables;
  const ranges = [{ startVersion: 2n, endVersion: -1n }];
  const request = create(method.input, {
    operations: [{ operation: { case: "deleteTableVersions", value: { id: ["t"], ranges } } }],
  });
  await assert.rejects(
    batchCommitTables(request, beginCall(method, { id: [] })),
    failsWith("OutcomeUnknown"),
  );
  const resolve = () => resolveAbandoned(context);
  return { client, resolve };
}

const versionsOf = async (client: Awaited<ReturnType<typeof openClient>>) =>
  (await client.call("listTableVersions", "t")).versions.map(({ version }) => Number(version));

test("a deletion of versions that the storage cut off is completed", async (t) => {
  const { client, resolve } = await cutOff(t, 2);
  assert.deepEqual(await versionsOf(client), [1, 2]);
  await resolve();
  assert.deepEqual(await versionsOf(client), [1]);
});

test("a deletion that is completed late leaves a version that has got one of its numbers meanwhile", async (t) => {
  const { client, resolve } = await cutOff(t, 2);
  await client.upload("insertIntoTable", "t", {}, rows([4]));
  await resolve();
  assert.deepEqual(await versionsOf(client), [1, 3]);
  assert.deepEqual(idsOf(await client.query("t")), [1, 2, 4]);
});

test("a deletion that is completed late leaves the table that has come to the same place meanwhile", async (t) => {
  const { client, resolve } = await cutOff(t, 1);
  await client.call("dropTable", "t");
  await client.upload("createTable", "t", {}, rows([5]));
  await client.upload("insertIntoTable", "t", {}, rows([6]));
  await resolve();
  assert.deepEqual(await versionsOf(client), [1, 2]);
  assert.deepEqual(idsOf(await client.query("t")), [5, 6]);
});
