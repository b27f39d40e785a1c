import assert from "node:assert/strict";
import { join } from "node:path";
import { type TestContext, test } from "vitest";
import { removeRows } from "../../../../../test/fixtures/catalog/catalog.ts";
import { openClient, temporaryDirectory } from "../../../../../test/fixtures/dir/directory-backend.ts";
import {
  CreateNamespaceMode,
  DropNamespaceBehavior,
} from "../../../../gen/lance/namespace/v1/namespace_pb.ts";
import { isLanceError } from "../../../../namespace/errors.ts";

/** A catalog with the tables `n$t` and `n$x$deep`, in which another writer has left rows of namespaces out. */
async function openWithout(t: TestContext, ...ids: string[]) {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  await client.call("createNamespace", "n");
  await client.call("createNamespace", "n$x");
  await client.call("declareTable", "n$t");
  await client.call("declareTable", "n$x$deep");
  await removeRows(join(root, "data"), ...ids);
  return client;
}

for (const name of ["CREATE", "EXIST_OK"] as const) {
  test(`a namespace without a row keeps its tables when it is created with ${name}`, async (t) => {
    const client = await openWithout(t, "n");
    await client.call("createNamespace", "n", { mode: CreateNamespaceMode[name] });
    await client.call("namespaceExists", "n");
    await client.call("describeTable", "n$t");
    await client.call("describeTable", "n$x$deep");
  });
}

test("a namespace without a row is replaced with everything in it", async (t) => {
  const client = await openWithout(t, "n", "n$x");
  await client.call("createNamespace", "n", { mode: CreateNamespaceMode.OVERWRITE });
  for (const id of ["n$t", "n$x$deep"])
    await assert.rejects(client.call("describeTable", id), (error) => isLanceError(error, "TableNotFound"));
});

test("a cascade reaches tables below a namespace without a row, also if there is nothing else", async (t) => {
  const client = await openWithout(t, "n$x", "n$t");
  await client.call("dropNamespace", "n", { behavior: DropNamespaceBehavior.CASCADE });
  await assert.rejects(client.call("describeTable", "n$x$deep"), (error) =>
    isLanceError(error, "TableNotFound"),
  );
});

test("a namespace is not empty while tables are below a namespace in it without a row", async (t) => {
  const client = await openWithout(t, "n$x", "n$t");
  await assert.rejects(client.call("dropNamespace", "n"), (error) =>
    isLanceError(error, "NamespaceNotEmpty"),
  );
  await client.call("describeTable", "n$x$deep");
});
