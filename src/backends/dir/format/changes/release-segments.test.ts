import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "vitest";
import {
  openClient,
  silent,
  temporaryDirectory,
} from "../../../../../test/fixtures/dir/directory-backend.ts";
import { idsOf, rows } from "../../../../../test/fixtures/dir/rows.ts";
import { createEngine } from "../../engine/engine.ts";
import { readIndices } from "../files/index-section.ts";
import { createLocalStore } from "../local/local-store.ts";
import { readVersion } from "../versions/version-files.ts";
import { releaseSegments } from "./release-segments.ts";

test("small segments of an index of vectors are released when there are many, and no row is lost", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  const ids = Array.from({ length: 300 }, (_, id) => id);
  await client.upload("createTable", "t", {}, rows(ids));
  await client.call("createTableIndex", "t", { column: "vector", indexType: "IVF_FLAT", name: "near" });
  await client.call("createTableIndex", "t", { column: "id", indexType: "BTREE", name: "by_id" });
  const engine = createEngine({ log: silent });
  t.onTestFinished(() => engine.close());
  // Each time the engine brings the indices up to date, that of the vectors gets a segment.
  const addSegment = async (id: number) => {
    await client.upload("insertIntoTable", "t", {}, rows([id]));
    const lease = await engine.acquire(join(root, "data", "t.lance"));
    await lease.table.optimize(0);
    lease.release();
  };
  const store = createLocalStore();
  const dataset = { store, root: store.keyOf(join(root, "data", "t.lance")), branch: undefined };
  const segments = async () => {
    const indices = await readIndices(await readVersion(dataset));
    return indices.map(({ name, segments, indexedRows }) => [name, segments, Number(indexedRows)]);
  };
  for (let added = 0; added < 7; added++) {
    assert.equal(await releaseSegments(dataset, t.signal), 0);
    await addSegment(300 + added);
  }
  assert.deepEqual(await segments(), [
    ["by_id", 1, 307],
    ["near", 8, 307],
  ]);
  assert.equal(await releaseSegments(dataset, t.signal), 7);
  assert.deepEqual(await segments(), [
    ["by_id", 1, 307],
    ["near", 1, 300],
  ]);
  const nearest = { k: 3n, vector: { singleVector: [305, 305] } };
  assert.deepEqual(idsOf(await client.query("t", nearest)).sort(), [304, 305, 306]);
  await addSegment(307);
  assert.deepEqual(await segments(), [
    ["by_id", 1, 308],
    ["near", 2, 308],
  ]);
});
