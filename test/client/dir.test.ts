import assert from "node:assert/strict";
import { readdir, realpath, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { test } from "vitest";
import { connect, isInvalidInput } from "../../src/client/index.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { clientSuite } from "./suite.ts";

clientSuite("dir", async () => {
  const { path: root, remove } = await temporaryDirectory();
  const namespace = await connect("dir", { root });
  return {
    namespace,
    async close() {
      await namespace.close();
      await remove();
    },
  };
});

test("a connection creates the data directory of a root, and every connection finds its catalog there", async (t) => {
  const { path, remove } = await temporaryDirectory();
  t.onTestFinished(remove);
  const root = join(path, "new");
  await using first = await connect("dir", { root });
  assert.deepEqual(await readdir(root), ["data"]);
  assert.deepEqual((await first.listTables()).tables, []);
  await first.createNamespace({ id: ["n"] });
  await using second = await connect("dir", { root: pathToFileURL(root).href });
  assert.deepEqual((await second.listNamespaces()).namespaces, ["n"]);
  const { location } = await second.declareTable({ id: ["t"] });
  assert.equal(location, join(await realpath(root), "data", "t.lance"));
});

test("a root that already is a catalog stays one, and the table directory can be chosen", async (t) => {
  const { path, remove } = await temporaryDirectory();
  t.onTestFinished(remove);
  await using other = await connect("dir", { root: path, table_directory: "." });
  await other.createTable("t", [{ id: 1 }]);
  await using namespace = await connect("dir", { root: path });
  assert.deepEqual((await namespace.listTables()).tables, ["t"]);
  assert.ok(!(await readdir(path)).includes("data"));
  const table = await namespace.openTable("t");
  assert.equal(await table.countRows(), 1);
});

test("a root that cannot be a directory is InvalidInput", async (t) => {
  const { path, remove } = await temporaryDirectory();
  t.onTestFinished(remove);
  await writeFile(join(path, "file"), "");
  await assert.rejects(connect("dir", { root: join(path, "file") }), isInvalidInput);
});
