import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { Int32, Table, tableToIPC, vectorFromArray } from "apache-arrow";
import { test } from "vitest";
import {
  failsWith,
  openClient,
  temporaryDirectory,
} from "../../../../../test/fixtures/dir/directory-backend.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { createLocalStore } from "../../format/local/local-store.ts";
import type { ObjectStore } from "../../format/storage.ts";

const rows = tableToIPC(new Table({ id: vectorFromArray([1, 2], new Int32()) }), "stream");

test("an update whose properties cannot be stored says that rows have changed, and not that a repetition is safe", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  await client.upload("createTable", "t", {}, rows);
  // No change of the catalog may wait here, so each one is refused with Throttling.
  const crowded = await openClient(t, root, { maxWaitingMutations: 0 });
  const updates = [{ column: "id", expression: "id + 10" }];
  await assert.rejects(
    crowded.call("updateTable", "t", { updates, properties: { owner: "ann" } }),
    failsWith("OutcomeUnknown"),
  );
  const { count } = await client.call("countTableRows", "t", { predicate: "id > 10" });
  assert.equal(count, 2n);
});

test("a restored version that cannot be read back counts as made", async (t) => {
  const root = await temporaryDirectory(t);
  const files = createLocalStore();
  let known: ReadonlySet<string> | undefined;
  const refuseNew = (key: string) => {
    const [directory, name = ""] = key.split("/_versions/");
    if (!directory?.endsWith("/t.lance") || known?.has(name) !== false) return;
    throw new LanceError("ServiceUnavailable", "the storage does not answer");
  };
  const store: ObjectStore = {
    ...files,
    async get(key) {
      refuseNew(key);
      return files.get(key);
    },
    async getTail(key, length) {
      refuseNew(key);
      return files.getTail(key, length);
    },
  };
  const client = await openClient(t, root, { storage: { store, root, engineOptions: {} } });
  await client.upload("createTable", "t", {}, rows);
  await client.call("deleteFromTable", "t", { predicate: "id = 1" });
  known = new Set(await readdir(join(root, "data/t.lance/_versions")));
  await assert.rejects(client.call("restoreTable", "t", { version: 1n }), failsWith("OutcomeUnknown"));
  known = undefined;
  assert.equal((await client.call("countTableRows", "t")).count, 2n);
});
