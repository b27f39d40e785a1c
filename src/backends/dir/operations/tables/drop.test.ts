import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { tableFromIPC, tableToIPC } from "apache-arrow";
import { type TestContext, test } from "vitest";
import {
  failsWith,
  openClient,
  silent,
  temporaryDirectory,
} from "../../../../../test/fixtures/dir/directory-backend.ts";
import { rows } from "../../../../../test/fixtures/dir/rows.ts";
import { withParts } from "../../../../../test/fixtures/dir/with-parts.ts";
import { beginCall } from "../../../../../test/support/caller.ts";
import { createDiskBucket } from "../../../../../test/support/disk-bucket.ts";
import { LanceNamespaceService } from "../../../../gen/lance/namespace/v1/service_pb.ts";
import { engineCall } from "../../engine/failures/errors.ts";
import { createLocalStore } from "../../format/local/local-store.ts";
import { openDirectory } from "../../open-directory.ts";
import { createRemoteStore } from "../../stores/remote-store.ts";
import { createDropOperations } from "./drop.ts";
import { requireTable } from "./find-table.ts";
import { withData } from "./open-data.ts";

/** Drops a table of the root, and lets another process act before the look at the directory. */
async function dropAfter(t: TestContext, root: string, before: () => Promise<unknown>): Promise<unknown> {
  const { context, close } = await openDirectory({ root, log: silent });
  t.onTestFinished(close);
  const layout = {
    ...context.layout,
    async isUnlistedTable(location: string) {
      await before();
      return context.layout.isUnlistedTable(location);
    },
  };
  const method = LanceNamespaceService.method.dropTable;
  const call = beginCall(method, { id: ["t"] });
  return createDropOperations(withParts(context, { layout })).dropTable(create(method.input), call);
}

test("a table that is declared during a lookup is not taken for one without a row", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  const dropped = dropAfter(t, root, () => client.call("declareTable", "t", { properties: { by: "other" } }));
  await assert.rejects(dropped, failsWith("TableNotFound"));
  assert.deepEqual((await client.call("describeTable", "t")).properties, { by: "other" });
  await client.call("dropTable", "t");
  assert.deepEqual((await client.call("listTables", "")).tables, []);
});

for (const kind of ["a disk", "a bucket"]) {
  test(`a table on ${kind} that is dropped beside a running change does not come back`, async (t) => {
    const root = await temporaryDirectory(t);
    const disk = createLocalStore();
    const store = { ...createRemoteStore(createDiskBucket(disk)), uriOf: disk.uriOf, keyOf: disk.keyOf };
    const storage = { store, root: disk.keyOf(root), engineOptions: {}, clientOptions: {} };
    const options = kind === "a bucket" ? { storage } : {};
    const client = await openClient(t, root, options);
    await client.upload("createTable", "t", {}, rows([1]));
    const { context, close } = await openDirectory({ root, log: silent, ...options });
    t.onTestFinished(close);
    const [opened, goesOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const change = context.histories.pass("t", async () =>
      withData(context, await requireTable(context, { id: ["t"] }), {}, async (native) => {
        await engineCall(() => native.version());
        opened.resolve();
        await goesOn.promise;
        const ipc = tableToIPC(tableFromIPC(rows([2])), "file");
        await engineCall(() => native.add(Buffer.from(ipc), "append"));
      }),
    );
    await opened.promise;
    const method = LanceNamespaceService.method.dropTable;
    const dropped = createDropOperations(context).dropTable(
      create(method.input),
      beginCall(method, { id: ["t"] }),
    );
    // Without the wait, the drop would be over long before.
    await Promise.race([dropped, sleep(300)]);
    goesOn.resolve();
    await Promise.all([change, dropped]);
    await assert.rejects(client.call("tableExists", "t"), failsWith("TableNotFound"));
    await client.upload("createTable", "t", {}, rows([3]));
    assert.equal((await client.call("countTableRows", "t")).count, 1n);
  });
}
