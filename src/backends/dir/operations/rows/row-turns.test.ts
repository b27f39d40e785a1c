import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { test } from "vitest";
import { rows } from "../../rows-fixture.ts";
import { openClient, temporaryDirectory } from "../../test-support.ts";

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
  await Promise.all(ids.map(change));
  assert.equal((await client.call("countTableRows", "t")).count, 17n);
  const files = await readdir(join(root, "data", "t.lance", "_deletions"));
  assert.equal(files.length, ids.length, "each change deletes rows of a single fragment");
});
