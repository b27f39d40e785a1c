import assert from "node:assert/strict";
import { Int32, Table, tableToIPC, vectorFromArray } from "apache-arrow";
import { test } from "vitest";
import { beginCall } from "../../../../../test/support/caller.ts";
import { LanceNamespaceService } from "../../../../gen/lance/namespace/v1/service_pb.ts";
import type { ObjectStore } from "../../format/storage.ts";
import { openDirectory } from "../../open-directory.ts";
import { failsWith, openClient, silent, temporaryDirectory } from "../../test-support.ts";
import { requireTable } from "../tables/lookup.ts";
import { createMultipartWrites } from "./multipart.ts";

const rows = tableToIPC(new Table({ id: vectorFromArray([1, 2], new Int32()) }), "stream");

test("of a completion and an abort at the same time, one gets the write as a whole", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  await client.upload("createTable", "t", {}, rows);
  const { context, close } = await openDirectory({ root, log: silent });
  t.onTestFinished(close);
  const { store } = context;
  const taken = Promise.withResolvers<void>();
  const afterTaken =
    <A extends unknown[], T>(request: (...args: A) => Promise<T>) =>
    (...args: A) =>
      taken.promise.then(() => request(...args));
  const aborting: ObjectStore = {
    ...store,
    putIfAbsent: afterTaken(store.putIfAbsent),
    delete: afterTaken(store.delete),
  };
  let aborted: Promise<void> | undefined;
  const completing: ObjectStore = {
    ...store,
    async *list(directory) {
      taken.resolve();
      await aborted?.catch(() => {});
      yield* store.list(directory);
    },
  };
  const writes = createMultipartWrites(context);
  const table = await requireTable(context, ["t"]);
  const write = { id: await writes.begin(table, undefined), table, branch: undefined };
  const call = beginCall(LanceNamespaceService.method.insertIntoTable, { id: ["t"] });
  async function* part() {
    yield rows;
  }
  for (const name of ["a", "b"]) await writes.stage({ write, name, overwrite: false }, part(), call);
  aborted = createMultipartWrites({ ...context, store: aborting }).abort(write);
  const completed = createMultipartWrites({ ...context, store: completing }).complete(write, call);
  await assert.rejects(aborted, failsWith("TransactionNotFound"));
  assert.equal((await completed).rows, 4n);
  assert.equal((await client.call("countTableRows", "t")).count, 6n);
});
