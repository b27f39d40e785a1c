import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { test } from "vitest";
import { connect, LanceError } from "../../src/client/index.ts";
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

test("a read of a directory that does not exist fails and creates none, and a change creates it", async (t) => {
  const { path, remove } = await temporaryDirectory();
  t.onTestFinished(remove);
  const root = join(path, "mistake");
  for (const spelling of [root, pathToFileURL(root).href]) {
    await using namespace = await connect("dir", { root: spelling });
    const isMissing = (error: unknown) =>
      error instanceof LanceError &&
      error.entry.name === "NamespaceNotFound" &&
      error.message.includes(spelling);
    await assert.rejects(async () => namespace.listTables(), isMissing);
    await assert.rejects(namespace.queryTable({ id: ["t"] }).toArray(), isMissing);
    await assert.rejects(namespace.describeTable({ id: ["t"] }), isMissing);
    assert.deepEqual(await readdir(path), []);
  }
  await using first = await connect("dir", { root });
  await using second = await connect("dir", { root });
  await first.createNamespace({ id: ["n"] });
  for (const each of [first, second]) assert.deepEqual((await each.listNamespaces()).namespaces, ["n"]);
});
