import assert from "node:assert/strict";
import { basename } from "node:path";
import pino from "pino";
import { type TestContext, test } from "vitest";
import { openClient, temporaryDirectory } from "../../../../../test/fixtures/dir/directory-backend.ts";
import { idsOf, rows } from "../../../../../test/fixtures/dir/rows.ts";
import { commitAsClient } from "../../../../../test/fixtures/dir/staged-commit.ts";
import { parseManifestName } from "../../format/dataset.ts";
import { createLocalStore } from "../../format/local/local-store.ts";
import type { ObjectStore } from "../../format/storage.ts";

interface Line {
  readonly msg: string;
  readonly table: string;
  readonly from: number;
  readonly to: number;
}

/** A store that records which files it makes durable by name. */
function createRecordingStore(synced: string[]): ObjectStore {
  const store = createLocalStore();
  const { files } = store;
  assert.ok(files);
  const syncObjects: typeof files.syncObjects = (keys, ...rest) => {
    synced.push(...keys);
    return files.syncObjects(keys, ...rest);
  };
  return { ...store, files: { ...files, syncObjects } };
}

/** Opens a catalog with managed versioning and a table, and an outsider that writes the same storage. */
async function openManaged(t: TestContext) {
  const root = await temporaryDirectory(t);
  const lines: Line[] = [];
  const synced: string[] = [];
  const store = createRecordingStore(synced);
  const client = await openClient(t, root, {
    managedVersioning: true,
    storage: { store, root, engineOptions: {} },
    log: pino({ level: "info" }, { write: (line) => lines.push(JSON.parse(line)) }),
  });
  const outsider = await openClient(t, root, { maintenance: false });
  const { location = "" } = await client.upload("createTable", "t", {}, rows([1]));
  const adopted = () =>
    lines.filter(({ msg }) => msg.startsWith("adopted")).map(({ from, to }) => [from, to]);
  const newest = async () => Number((await client.call("describeTableVersion", "t")).version?.version);
  const commit = (id: number) => commitAsClient(client, outsider, id);
  return { client, outsider, synced, lines, adopted, newest, commit, location };
}

test("adopts versions that were committed past the catalog in their order, before the next commit", async (t) => {
  const { client, outsider, synced, adopted, newest, commit } = await openManaged(t);
  assert.equal(await newest(), 1);
  await outsider.upload("insertIntoTable", "t", {}, rows([2]));
  await outsider.upload("insertIntoTable", "t", {}, rows([3]));
  synced.length = 0;
  await commit(4);
  assert.deepEqual(adopted(), [[2, 3]]);
  const manifests = synced.map((key) => parseManifestName(basename(key))?.version).filter(Boolean);
  assert.deepEqual(manifests, [2n, 3n]);
  const data = synced.filter((key) => key.endsWith(".lance"));
  assert.equal(new Set(data).size, 3);
  assert.deepEqual(idsOf(await client.query("t")), [1, 2, 3, 4]);
  assert.equal(await newest(), 4);
  assert.deepEqual(adopted(), [[2, 3]]);
});

test("adopts versions once, when a client asks for the newest one", async (t) => {
  const { client, outsider, adopted, newest, lines, location } = await openManaged(t);
  assert.equal(await newest(), 1);
  await outsider.upload("insertIntoTable", "t", {}, rows([2]));
  await Promise.all([newest(), newest()]);
  assert.deepEqual(adopted(), [[2, 2]]);
  assert.equal(lines.find(({ msg }) => msg.startsWith("adopted"))?.table, location.slice(1));
  await outsider.call("deleteFromTable", "t", { predicate: "id = 1" });
  await outsider.upload("insertIntoTable", "t", {}, rows([3]));
  const listed = await client.call("listTableVersions", "t", { descending: true });
  assert.equal(listed.versions.length, 4);
  assert.deepEqual(adopted(), [
    [2, 2],
    [3, 4],
  ]);
});

test("does not take its own commits for those of others", async (t) => {
  const { client, adopted, newest, commit } = await openManaged(t);
  assert.equal(await newest(), 1);
  await client.upload("insertIntoTable", "t", {}, rows([2]));
  await client.call("deleteFromTable", "t", { predicate: "id = 2" });
  await client.call("updateTableSchemaMetadata", "t", { metadata: { a: "b" } });
  await client.call("createTableIndex", "t", { column: "id", indexType: "BTREE" });
  await commit(7);
  await newest();
  assert.deepEqual(adopted(), []);
});

test("says nothing of what it finds when it sees a table for the first time, or again after a drop", async (t) => {
  const { client, outsider, adopted, newest } = await openManaged(t);
  await outsider.upload("insertIntoTable", "t", {}, rows([2]));
  assert.equal(await newest(), 2);
  await outsider.call("dropTable", "t");
  await outsider.upload("createTable", "t", {}, rows([5]));
  assert.equal(await newest(), 1);
  assert.deepEqual(adopted(), []);
  assert.deepEqual(idsOf(await client.query("t")), [5]);
});
