import assert from "node:assert/strict";
import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { type TestContext, test } from "vitest";
import {
  failsWith,
  openClient,
  silent,
  temporaryDirectory,
} from "../../../../../test/fixtures/dir/directory-backend.ts";
import { idsOf, rows } from "../../../../../test/fixtures/dir/rows.ts";
import { beginCall } from "../../../../../test/support/caller.ts";
import { LanceNamespaceService } from "../../../../gen/lance/namespace/v1/service_pb.ts";
import { DeclareTableRequestSchema } from "../../../../gen/lance/namespace/v1/table_pb.ts";
import type { Catalog } from "../../catalog/catalog.ts";
import { type Disk, machineDisk } from "../../format/local/disk.ts";
import { createLocalStore } from "../../format/local/local-store.ts";
import { openDirectory } from "../../open-directory.ts";
import { createDeclareOperations } from "./declare.ts";

/** Declarations in a namespace `n`, with counts of the syncs and mutations that they wait for. */
async function openWorkshop(t: TestContext) {
  const root = await temporaryDirectory(t);
  await (await openClient(t, root)).call("createNamespace", "n");
  const waits = { syncs: 0, mutations: 0 };
  const disk: Disk = {
    ...machineDisk,
    syncBytes(file) {
      waits.syncs++;
      return machineDisk.syncBytes(file);
    },
    syncNames(directory) {
      waits.syncs++;
      return machineDisk.syncNames(directory);
    },
  };
  const storage = { store: createLocalStore("/", disk), root, engineOptions: {} };
  const { context, close } = await openDirectory({ root, storage, log: silent, maintenance: false });
  t.onTestFinished(close);
  const catalog: Catalog = {
    ...context.catalog,
    mutate(mutation) {
      waits.mutations++;
      return context.catalog.mutate(mutation);
    },
  };
  const { declareTable } = createDeclareOperations({ ...context, catalog });
  return {
    waits,
    declare: (name: string) =>
      declareTable(
        create(DeclareTableRequestSchema),
        beginCall(LanceNamespaceService.method.declareTable, { id: ["n", name] }),
      ),
  };
}

test("a declaration in a namespace waits for one commit, and for the syncs of its mark", async (t) => {
  const { declare, waits } = await openWorkshop(t);
  await declare("first");
  Object.assign(waits, { syncs: 0, mutations: 0 });
  const { location = "" } = await declare("t");
  // The directory's name and the mark's are synced; then the rows, the transaction and the manifest, each with its
  // name.
  assert.deepEqual(waits, { syncs: 8, mutations: 1 });
  assert.deepEqual(await readdir(location), [".lance-reserved"]);
});

test("a declaration that is refused leaves no directory", async (t) => {
  const { declare } = await openWorkshop(t);
  const { location = "" } = await declare("t");
  const tables = async () => (await readdir(`${location}/..`)).filter((name) => !name.startsWith("."));
  const before = await tables();
  await assert.rejects(declare("t"), failsWith("TableAlreadyExists"));
  assert.deepEqual(await tables(), before);
});

test("a name can be used whose usual location has the place of a table without a directory in it", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  await client.call("declareTable", "x", { location: "t.lance/x" });
  await rm(join(root, "data", "t.lance"), { recursive: true });
  await client.call("declareTable", "t");
  await client.call("declareTable", "y", { location: "u.lance/y" });
  await rm(join(root, "data", "u.lance"), { recursive: true });
  const declare = { case: "declareTable" as const, value: { id: ["u"] } };
  await client.call("batchCommitTables", "$", { operations: [{ operation: declare }] });
  assert.deepEqual((await client.call("listTables", "$")).tables, ["t", "u", "x", "y"]);
});

test("no table gets a place in the directory of a deregistered table of a namespace", async (t) => {
  const client = await openClient(t, await temporaryDirectory(t));
  await client.call("createNamespace", "n");
  await client.upload("createTable", "n$t", {}, rows([1]));
  const location = `${basename((await client.call("deregisterTable", "n$t")).location ?? "")}/data`;
  await assert.rejects(client.call("registerTable", "x", { location }), failsWith("InvalidInput"));
});

test("no table gets a place in the directory of a root table that has no row", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  const directory = join(root, "data", "old.lance");
  await mkdir(directory);
  await writeFile(join(directory, ".lance-reserved"), "");
  assert.deepEqual((await client.call("listTables", "$")).tables, ["old"]);
  for (const location of ["old.lance/_refs", "old.lance/a/b"]) {
    await assert.rejects(client.call("declareTable", "x", { location }), failsWith("InvalidInput"));
    await assert.rejects(client.call("registerTable", "x", { location }), failsWith("InvalidInput"));
  }
  await client.call("declareTable", "x", { location: "other.lance/a" });
});

test("a table that is declared in a directory of another name stays hidden from programs that list directories", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  await client.call("createNamespace", "n");
  await client.call("declareTable", "n$t", { location: "a.lance" });
  await client.call("declareTable", "t", { location: "b.lance" });
  const declareTable = { case: "declareTable" as const, value: { id: ["u"], location: "c.lance" } };
  await client.call("batchCommitTables", "$", { operations: [{ operation: declareTable }] });
  for (const [id, location] of Object.entries({ n$t: "a.lance", t: "b.lance", u: "c.lance" })) {
    assert.deepEqual(await readdir(join(root, "data", location)), [".lance-deregistered"]);
    assert.equal((await client.call("describeTable", id, { checkDeclared: true })).isOnlyDeclared, true);
    await client.upload("insertIntoTable", id, {}, rows([1]));
    assert.ok((await readdir(join(root, "data", location))).includes(".lance-deregistered"));
  }
  await client.call("renameTable", "t", { newTableName: "b" });
  assert.ok(!(await readdir(join(root, "data", "b.lance"))).includes(".lance-deregistered"));
  assert.deepEqual(idsOf(await client.query("b")), [1]);
});
