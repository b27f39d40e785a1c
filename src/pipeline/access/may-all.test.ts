import assert from "node:assert/strict";
import { test } from "vitest";
import { beginCall } from "../../../test/support/caller.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import type { Touch } from "../../namespace/operations/touch.ts";
import { mayAll } from "./authorize-objects.ts";

const call = beginCall(LanceNamespaceService.method.describeTable);
const id = ["ns", "t"];

function permissionsWithout(...refused: readonly string[]) {
  const asked: Touch[] = [];
  const allow = (_: unknown, touch: Touch) => {
    asked.push(touch);
    return !refused.includes(touch.operation);
  };
  const allowEach = async (_: unknown, touches: readonly Touch[]) => touches.map((touch) => allow(_, touch));
  return {
    asked,
    permissions: { allow, allowEach, databaseOf: () => undefined, allowSiblings: () => undefined },
  };
}

test("a caller may write to the files of a table if it may do everything that writes to the table", async () => {
  const { permissions, asked } = permissionsWithout("dropTable", "describeTable");
  assert.equal(await mayAll(permissions, call, id, "write"), true);
  assert.equal(await mayAll(permissions, call, id, "manage"), false);
  for (const touch of asked) assert.deepEqual([touch.kind, touch.id], ["Table", id]);
  for (const operation of ["createTable", "insertIntoTable", "updateTable", "deleteFromTable"] as const)
    assert.ok(
      asked.some((touch) => touch.operation === operation),
      operation,
    );
});

test("a caller from whom one of these operations is kept may not", async () => {
  for (const operation of ["deleteFromTable", "restoreTable", "createTableVersion"])
    assert.equal(await mayAll(permissionsWithout(operation).permissions, call, id, "write"), false);
  assert.equal(await mayAll(permissionsWithout("queryTable").permissions, call, id, "read"), false);
});

test("a caller from whom the lists of a namespace are kept may not list it", async () => {
  assert.equal(await mayAll(permissionsWithout("dropTable").permissions, call, [], "list"), true);
  assert.equal(await mayAll(permissionsWithout("listTables").permissions, call, [], "list"), false);
  const { permissions, asked } = permissionsWithout();
  await mayAll(permissions, call, [], "list");
  for (const touch of asked) assert.deepEqual([touch.kind, touch.id], ["Namespace", []]);
});
