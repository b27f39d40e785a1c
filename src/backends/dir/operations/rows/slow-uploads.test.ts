import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { test, vi } from "vitest";
import {
  failsWith,
  openClient,
  silent,
  temporaryDirectory,
} from "../../../../../test/fixtures/dir/directory-backend.ts";
import { rows } from "../../../../../test/fixtures/dir/rows.ts";
import { beginCall } from "../../../../../test/support/caller.ts";
import { createDiskBucket } from "../../../../../test/support/disk-bucket.ts";
import { LanceNamespaceService } from "../../../../gen/lance/namespace/v1/service_pb.ts";
import { createLocalStore } from "../../format/local/local-store.ts";
import { createDirectoryBackend } from "../../index.ts";
import { createRemoteStore } from "../../stores/remote-store.ts";

test("rows for a bucket whose table another gateway drops during a slow upload are refused, and the table does not come back", async (t) => {
  const root = await temporaryDirectory(t);
  const disk = createLocalStore();
  const store = { ...createRemoteStore(createDiskBucket(disk)), uriOf: disk.uriOf, keyOf: disk.keyOf };
  const storage = { store, root: disk.keyOf(root), engineOptions: {}, clientOptions: {} };
  const backend = await createDirectoryBackend({ root, log: silent, storage });
  t.onTestFinished(backend.close);
  const client = await openClient(t, root, { storage });
  await client.upload("createTable", "t", {}, rows([1]));
  t.onTestFinished(() => void vi.useRealTimers());
  vi.useFakeTimers({ toFake: ["Date"] });
  const method = LanceNamespaceService.method.insertIntoTable;
  async function* body() {
    const ipc = rows([2]);
    yield ipc.subarray(0, 100);
    await client.call("dropTable", "t");
    vi.setSystemTime(Date.now() + 2_000);
    yield ipc.subarray(100);
  }
  const inserted = backend.operations.insertIntoTable?.(
    create(method.input),
    body(),
    beginCall(method, { id: ["t"] }),
  );
  await assert.rejects(inserted as Promise<unknown>, failsWith("TableNotFound"));
  await assert.rejects(client.call("tableExists", "t"), failsWith("TableNotFound"));
});
