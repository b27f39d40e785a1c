import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { openClient, temporaryDirectory } from "../../../../../test/fixtures/dir/directory-backend.ts";
import { idsOf, rows } from "../../../../../test/fixtures/dir/rows.ts";
import { createLocalStore } from "../../format/local/local-store.ts";

test("updates, deletes and merges at the same time leave no file of deleted rows that no version needs", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  const ids = Array.from({ length: 24 }, (_, id) => id);
  await client.upload("createTable", "t", {}, rows([...ids, ids.length]));
  const change = (id: number) => {
    if (id % 3 === 0) return client.call("deleteFromTable", "t", { predicate: `id = ${id}` });
    if (id % 3 === 1) {
      const updates = [{ column: "name", expression: "'new'" }];
      return client.call("updateTable", "t", { predicate: `id = ${id}`, updates });
    }
    return client.upload("mergeInsertIntoTable", "t", { on: ["id"], whenMatchedUpdateAll: true }, rows([id]));
  };
  // No change waits for its turn until the limit, which a busy machine exceeds.
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  t.onTestFinished(() => void vi.useRealTimers());
  await Promise.all(ids.map(change));
  assert.equal((await client.call("countTableRows", "t")).count, 17n);
  const files = await readdir(join(root, "data", "t.lance", "_deletions"));
  assert.equal(files.length, ids.length, "each change deletes rows of a single fragment");
});

test("changes follow each other while an earlier one waits for its sync, and share the next sync", async (t) => {
  const root = await temporaryDirectory(t);
  const local = createLocalStore();
  const held = Promise.withResolvers<void>();
  const syncs: (readonly string[])[] = [];
  let isHeld = false;
  const files = {
    ...local.files,
    async syncObjects(keys: readonly string[], within: string) {
      if (isHeld) syncs.push(keys.filter((key) => key.endsWith(".manifest")));
      if (isHeld) await held.promise;
      await local.files.syncObjects(keys, within);
    },
  };
  const storage = { store: { ...local, files }, root, engineOptions: {} };
  const client = await openClient(t, root, { storage, maintenance: false });
  await client.upload("createTable", "t", {}, rows([1, 2, 3, 4, 5]));
  isHeld = true;
  const updates = [{ column: "name", expression: "'new'" }];
  const merge = { on: ["id"], whenNotMatchedInsertAll: true };
  const changes = [
    client.call("deleteFromTable", "t", { predicate: "id = 1" }),
    client.upload("mergeInsertIntoTable", "t", merge, rows([6])),
    client.upload("mergeInsertIntoTable", "t", merge, rows([7])),
    client.call("updateTable", "t", { predicate: "id = 2", updates }),
    client.call("deleteFromTable", "t", { predicate: "id = 3" }),
  ];
  // All of them are readable before the first has been acknowledged.
  const readable = async () => idsOf(await client.query("t")).sort();
  await expect.poll(readable).toEqual([2, 4, 5, 6, 7]);
  const newest = async () => (await client.call("describeTableVersion", "t")).version?.version;
  await expect.poll(newest).toBe(6n);
  held.resolve();
  await Promise.all(changes);
  assert.equal(syncs.flat().length, changes.length);
  // The last of them may have come too late for the second sync.
  assert.ok(syncs.length <= 3, `${syncs.length} syncs`);
});
