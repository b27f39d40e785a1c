import assert from "node:assert/strict";
import { readdir, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "vitest";
import {
  failsWith,
  openClient,
  silent,
  temporaryDirectory,
} from "../../../test/fixtures/dir/directory-backend.ts";
import { idsOf, rows } from "../../../test/fixtures/dir/rows.ts";
import { DropNamespaceBehavior } from "../../gen/lance/namespace/v1/namespace_pb.ts";
import { RegisterTableMode } from "../../gen/lance/namespace/v1/table_pb.ts";
import { createDirectoryBackend } from "./index.ts";
import { openDirectory } from "./open-directory.ts";

test("keeps the data of deregistered tables, which can be registered again", async (t) => {
  const client = await openClient(t, await temporaryDirectory(t));
  await client.upload("createTable", "t", {}, rows([1]));
  await client.call("deregisterTable", "t");
  await assert.rejects(client.call("describeTable", "t"), failsWith("TableNotFound"));
  assert.deepEqual((await client.call("listTables", "$")).tables, []);
  await client.upload("createTable", "t", {}, rows([7, 8]));
  await client.call("registerTable", "back", { location: "t.lance" });
  assert.deepEqual(idsOf(await client.query("back")), [1]);
  assert.deepEqual(idsOf(await client.query("t")), [7, 8]);
  assert.deepEqual((await client.call("listTables", "$")).tables, ["back", "t"]);
  await assert.rejects(
    client.call("registerTable", "back", { location: "t.lance" }),
    failsWith("TableAlreadyExists"),
  );
  const mode = RegisterTableMode.OVERWRITE;
  await client.call("registerTable", "back", { location: "t.lance", mode, properties: { a: "1" } });
  assert.deepEqual((await client.call("describeTable", "back")).properties, { a: "1" });
});

test("refuses locations that leave the catalog or the directory of another table", async (t) => {
  const root = await temporaryDirectory(t);
  const outside = await temporaryDirectory(t);
  const client = await openClient(t, root);
  await client.upload("createTable", "t", {}, rows([1]));
  await symlink(outside, join(root, "data", "link"));
  const bad = [
    "../x",
    "a/../../x",
    "..",
    ".",
    "",
    "/etc",
    "file:///etc",
    "s3://bucket/x",
    "%2e%2e/x",
    "a%2f..",
    "a\\..\\b",
    "a//b",
    "a/",
    ".hidden",
    "__manifest",
    "__manifest/x",
    "t.lance",
    "t.lance/data",
    "link",
    "link/x",
    "a\0b",
  ];
  for (const location of bad) {
    await assert.rejects(
      client.call("registerTable", "x", { location }),
      failsWith("InvalidInput"),
      location,
    );
    if (location === "") continue;
    await assert.rejects(client.call("declareTable", "x", { location }), failsWith("InvalidInput"), location);
  }
  await client.call("declareTable", "x", { location: "deep/x.lance" });
  await assert.rejects(client.call("registerTable", "y", { location: "deep" }), failsWith("InvalidInput"));

  // A link that appears after the registration is refused when the table is used.
  await client.call("declareTable", "z", { location: "later" });
  await rm(join(root, "data", "later"), { recursive: true });
  await symlink(outside, join(root, "data", "later"));
  await writeFile(join(outside, "precious"), "");
  await assert.rejects(client.call("countTableRows", "z"), failsWith("InvalidInput"));
  await client.call("dropTable", "z");
  await client.call("declareTable", "linked");
  await rm(join(root, "data", "linked.lance"), { recursive: true });
  await writeFile(join(outside, ".lance-reserved"), "");
  await symlink(outside, join(root, "data", "linked.lance"));
  await client.call("dropTable", "linked");
  await assert.rejects(client.call("describeTable", "linked"), failsWith("TableNotFound"));
  assert.deepEqual((await readdir(outside)).sort(), [".lance-reserved", "precious"]);
  assert.deepEqual(await readdir(join(root, "data", ".intents")), [], "no later change tries again");
});

test("takes a root that is a catalog as its own base, and refuses a bad root in one line", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root, { tableDirectory: "." });
  await client.upload("createTable", "t", {}, rows([1]));
  assert.deepEqual((await readdir(root)).sort(), ["__manifest", "t.lance"]);
  const again = await openClient(t, root);
  assert.deepEqual((await again.call("listTables", "$")).tables, ["t"]);

  const file = join(root, "file");
  await writeFile(file, "");
  for (const options of [{ root: file }, { root, tableDirectory: "../elsewhere" }]) {
    await assert.rejects(createDirectoryBackend({ ...options, log: silent }), (error: Error) => {
      assert.match(error.message, /^cannot use \S+ as the directory of a catalog: [^\n]+$/);
      return true;
    });
  }
});

test("a row of another program whose location is the manifest, or the gateway's own, does not let a drop remove it", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  await client.call("createNamespace", "n");
  await client.upload("createTable", "n$t", {}, rows([1]));
  const { context, close } = await openDirectory({ root, log: silent, maintenance: false });
  t.onTestFinished(close);
  const places = ["__manifest", "./__manifest", "__manifest/data", "%5f_manifest", ".intents", "a\0b"];
  await context.catalog.mutate((draft) => {
    for (const [i, location] of places.entries())
      draft.put({ objectId: `n$x${i}`, objectType: "table", location, properties: {} });
  });
  for (const i of places.keys())
    for (const operation of ["dropTable", "describeTable", "deregisterTable", "countTableRows"] as const)
      await assert.rejects(client.call(operation, `n$x${i}`), failsWith("InvalidInput"), places[i]);
  assert.deepEqual((await client.call("listTables", "n", { includeDeclared: false })).tables, ["t"]);
  await client.call("dropNamespace", "n", { behavior: DropNamespaceBehavior.CASCADE });
  await client.call("declareTable", "after");
  assert.deepEqual((await client.call("listTables", "$")).tables, ["after"]);
});

test("a listing of tables with data leaves out those that no location leads to", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  await client.call("createNamespace", "n");
  await client.upload("createTable", "a", {}, rows([1]));
  await client.upload("createTable", "n$t", {}, rows([1]));
  const { context, close } = await openDirectory({ root, log: silent, maintenance: false });
  t.onTestFinished(close);
  await context.catalog.mutate((draft) => {
    for (const [objectId, location] of [
      ["n$a", undefined],
      ["n$b", "../x"],
      ["n$c", "s3://bucket/x"],
    ] as const)
      draft.put({ objectId, objectType: "table", location, properties: {} });
  });
  // The root has a table of the name that has no location in the namespace.
  assert.deepEqual((await client.call("listTables", "n", { includeDeclared: false })).tables, ["t"]);
  assert.deepEqual((await client.call("listTables", "$", { includeDeclared: false })).tables, ["a"]);
});

test("a drop keeps the directory that another row has in another spelling", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  for (const id of ["t", "u"]) await client.upload("createTable", id, {}, rows([1, 2]));
  const { context, close } = await openDirectory({ root, log: silent, maintenance: false });
  t.onTestFinished(close);
  const spellings = ["t.lance/", "./t.lance", ".//t.lance/./"];
  await context.catalog.mutate((draft) => {
    for (const [i, location] of spellings.entries())
      draft.put({ objectId: `x${i}`, objectType: "table", location, properties: {} });
    draft.delete("u");
    draft.put({ objectId: "v", objectType: "table", location: "u.lance/", properties: {} });
  });
  assert.deepEqual((await client.call("listTables", "$")).tables, ["t", "v", "x0", "x1", "x2"]);
  for (const i of spellings.keys()) await client.call("dropTable", `x${i}`);
  assert.deepEqual(idsOf(await client.query("t")), [1, 2]);
  await assert.rejects(client.call("registerTable", "w", { location: "u.lance" }), failsWith("InvalidInput"));
  await client.call("dropTable", "v");
  assert.deepEqual((await client.call("listTables", "$")).tables, ["t"]);
});
