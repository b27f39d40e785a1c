import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { type TestContext, test } from "vitest";
import { failsWith, openClient, silent } from "../../../../test/fixtures/dir/directory-backend.ts";
import {
  openWorkshop,
  putFile,
  putUnlisted,
  ROWS,
  type Workshop,
} from "../../../../test/fixtures/dir/maintenance.ts";
import { openDirectory } from "../open-directory.ts";
import { type Migrated, migrate } from "./migrate.ts";

async function migrated({ root }: Workshop, dryRun = false): Promise<Migrated[]> {
  const { context, close } = await openDirectory({ root, log: silent });
  try {
    return await migrate(context, dryRun);
  } finally {
    await close();
  }
}

/** Returns a root with tables of both versions of the format. */
async function mixedRoot(t: TestContext): Promise<Workshop> {
  const workshop = await openWorkshop(t);
  await workshop.client.upload("createTable", "listed", {}, ROWS);
  await workshop.client.upload("createTable", "aside", {}, ROWS);
  await workshop.client.call("deregisterTable", "aside");
  for (const name of ["a", "b", "c", "d"]) await putUnlisted(workshop, `${name}.lance`);
  await putFile(workshop, "declared.lance/.lance-reserved", "reserved");
  await putFile(workshop, "with$dollar.lance/.lance-reserved", "reserved");
  return workshop;
}

const registered = (table: string) => ({ table, location: `${table}.lance`, outcome: "registered" });

test("adds rows for tables that only have directories, once", async (t) => {
  const workshop = await mixedRoot(t);
  const { base, client } = workshop;
  const files = await readdir(base, { recursive: true });
  const before = await client.call("listTables", "");
  const expected = [
    ...["a", "b", "c", "d", "declared"].map(registered),
    { table: "with$dollar", location: "with$dollar.lance", outcome: "skipped" },
  ];
  const withoutReason = (tables: Migrated[]) => tables.map(({ reason: _, ...table }) => table);
  assert.deepEqual(withoutReason(await migrated(workshop, true)), expected);
  assert.deepEqual(await readdir(base, { recursive: true }), files, "a dry run writes nothing");
  assert.deepEqual(withoutReason(await migrated(workshop)), expected);
  assert.deepEqual(withoutReason(await migrated(workshop)), expected.slice(-1));
  assert.deepEqual((await client.call("listTables", "")).tables, before.tables);
  for (const name of ["a", "listed"]) await client.query(name);
  const { isOnlyDeclared } = await client.call("describeTable", "declared", { checkDeclared: true });
  assert.equal(isOnlyDeclared, true);
});

test("several migrations at once, beside drops, give one row each", async (t) => {
  const workshop = await mixedRoot(t);
  const [first, second] = await Promise.all([
    migrated(workshop),
    migrated(workshop),
    workshop.client.call("dropTable", "a"),
  ]);
  const names = [...first, ...second]
    .filter(({ outcome }) => outcome === "registered")
    .map(({ table }) => table);
  const others = ["b", "c", "d", "declared"];
  assert.deepEqual(names.filter((name) => name !== "a").sort(), others);
  await assert.rejects(workshop.client.query("a"), failsWith("TableNotFound"));
});

test("without a row, a table can be dropped, put aside, renamed and changed like any other", async (t) => {
  const workshop = await mixedRoot(t);
  const { root, base, client } = workshop;
  await client.call("dropTable", "a");
  await client.call("deregisterTable", "b");
  await client.call("renameTable", "c", { newTableName: "renamed" });
  await client.call("alterTableAddColumns", "d", { newColumns: [{ name: "twice", expression: "id * 2" }] });
  await client.call("alterTableDropColumns", "d", { columns: ["id"] });
  const next = await openClient(t, root);
  for (const each of [client, next]) {
    const { tables } = await each.call("listTables", "");
    assert.deepEqual(tables, ["d", "declared", "listed", "renamed", "with$dollar"]);
    assert.equal((await each.call("countTableRows", "renamed")).count, 3n);
    for (const id of ["a", "b", "c"]) {
      await assert.rejects(each.call("describeTable", id), failsWith("TableNotFound"));
      await assert.rejects(each.call("dropTable", id), failsWith("TableNotFound"));
    }
  }
  assert.ok(!(await readdir(base)).includes("a.lance"));
  await client.call("registerTable", "b", { location: "b.lance" });
  assert.equal((await client.call("countTableRows", "b")).count, 3n);
});
