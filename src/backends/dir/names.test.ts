import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { test } from "vitest";
import { failsWith, openClient, temporaryDirectory } from "../../../test/fixtures/dir/directory-backend.ts";
import { rows } from "../../../test/fixtures/dir/rows.ts";
import { CreateTableMode } from "../../gen/lance/namespace/v1/data_pb.ts";
import { CreateNamespaceMode } from "../../gen/lance/namespace/v1/namespace_pb.ts";

const INVALID = failsWith("InvalidInput");

test("objects that exist keep names that new ones must not have", async (t) => {
  const root = await temporaryDirectory(t);
  const first = await openClient(t, root, { names: "unicode" });
  await first.call("createNamespace", "ä");
  for (const id of ["ä$ö", "ü"]) await first.upload("createTable", id, {}, rows([1]));
  await first.close();

  const client = await openClient(t, root);
  assert.deepEqual((await client.call("listNamespaces", "$")).namespaces, ["ä"]);
  for (const id of ["ä$ö", "ü"]) {
    await client.call("describeTable", id);
    await client.upload("insertIntoTable", id, {}, rows([2]));
    await client.upload("createTable", id, { mode: CreateTableMode.EXIST_OK }, rows([3]));
    assert.equal((await client.call("countTableRows", id)).count, 2n);
    await client.upload("createTable", id, { mode: CreateTableMode.OVERWRITE }, rows([4]));
    assert.equal((await client.call("countTableRows", id)).count, 1n);
    await assert.rejects(client.upload("createTable", id, {}, rows([5])), failsWith("TableAlreadyExists"));
  }
  await client.call("createNamespace", "ä", { mode: CreateNamespaceMode.EXIST_OK });

  // A new object in an old namespace, and an old one in a new place.
  await client.upload("createTable", "ä$new", {}, rows([1]));
  await client.call("createNamespace", "n");
  await client.call("renameTable", "ä$ö", { newTableName: "ö", newNamespaceId: ["n"] });
  await client.call("renameTable", "n$ö", { newTableName: "o" });
  await assert.rejects(client.call("renameTable", "n$o", { newTableName: "ö" }), INVALID);
  await client.call("dropTable", "ü");
  await assert.rejects(client.upload("createTable", "ü", {}, rows([1])), INVALID);
  assert.ok(!(await readdir(root, { recursive: true })).some((name) => name.includes("ü")));
});
