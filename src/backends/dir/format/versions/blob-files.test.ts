import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "vitest";
import { blobStream, patternBytes } from "../../../../../test/fixtures/dir/blobs.ts";
import { openClient, temporaryDirectory } from "../../../../../test/fixtures/dir/directory-backend.ts";
import { createLocalStore } from "../local/local-store.ts";
import type { FileFeatures } from "../storage.ts";
import { listTree } from "../storage.ts";
import { syncVersion } from "./make-durable.ts";

test("a version is durable with the blobs that have files of their own", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  const rows = [patternBytes(200_000), patternBytes(10), null].map((blob, id) => ({ id, blob }));
  await client.upload("createTable", "t", {}, blobStream(rows));
  const store = createLocalStore();
  const dataset = { store, root: join(root, "data", "t.lance").slice(1) };
  const data = `${dataset.root}/data`;
  const blobs = (await listTree(store, data)).filter((name) => name.endsWith(".blob"));
  assert.equal(blobs.length, 1);

  const trees: string[] = [];
  const files: FileFeatures = {
    ...(store.files as FileFeatures),
    syncTree: async (path) => void trees.push(path),
  };
  await syncVersion({ ...dataset, store: { ...store, files } });
  const directories = blobs.map((name) => `${data}/${name.slice(0, name.indexOf("/"))}`);
  assert.deepEqual(trees, directories);
});
