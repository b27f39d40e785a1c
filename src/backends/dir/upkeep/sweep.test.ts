import assert from "node:assert/strict";
import { expect, type TestContext, test } from "vitest";
import { openClient, silent, temporaryDirectory } from "../../../../test/fixtures/dir/directory-backend.ts";
import { rows } from "../../../../test/fixtures/dir/rows.ts";
import { LanceError } from "../../../namespace/errors.ts";
import { createLocalStore } from "../format/local/local-store.ts";
import type { ObjectStore } from "../format/storage.ts";
import { openDirectory } from "../open-directory.ts";
import { createDirectoryTables } from "./directory-tables.ts";
import { sweepTables } from "./sweep.ts";
import type { TendedTable } from "./upkeep-tables.ts";

const TABLES = ["a", "b", "c"];

/** Opens a directory with tables through a store, and returns its context. */
async function openTables(t: TestContext, store: ObjectStore) {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  for (const table of TABLES) await client.upload("createTable", table, {}, rows([0]));
  const storage = { store, root, engineOptions: {} };
  const { context, close } = await openDirectory({ root, storage, log: silent });
  t.onTestFinished(close);
  return context;
}

test("a table that cannot be read does not end the look at the others", async (t) => {
  const files = createLocalStore();
  const store: ObjectStore = {
    ...files,
    list(directory) {
      if (directory.endsWith("/a.lance/_versions"))
        throw new LanceError("ServiceUnavailable", "this directory is on a bad sector");
      return files.list(directory);
    },
  };
  const context = await openTables(t, store);
  const reported: string[] = [];
  const stop = new AbortController();
  const report = async ({ table }: TendedTable) => void reported.push(String(table.id[0]));
  const times = { sweepMs: 60_000, lookMs: 1, relookMs: 60_000 };
  const sweeping = sweepTables(createDirectoryTables(context), times, report, silent, stop.signal);
  await expect.poll(() => reported).toEqual(["b", "c"]);
  stop.abort();
  await sweeping;
});

test("interrupted changes are finished during a long round, too", async (t) => {
  const context = await openTables(t, createLocalStore());
  const events: string[] = [];
  const journal: typeof context.journal = {
    ...context.journal,
    abandoned() {
      events.push("resolve");
      return context.journal.abandoned();
    },
  };
  const stop = new AbortController();
  const report = async ({ table }: TendedTable) => {
    const name = String(table.id[0]);
    events.push(name);
    if (name === TABLES.at(-1)) stop.abort();
  };
  const times = { sweepMs: 1, lookMs: 5, relookMs: 60_000 };
  await sweepTables(createDirectoryTables({ ...context, journal }), times, report, silent, stop.signal);
  assert.ok(events.indexOf("resolve") < events.indexOf("b"), events.join(" "));
});
