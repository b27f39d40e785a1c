import assert from "node:assert/strict";
import { test } from "vitest";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { pathFieldsOf } from "./message-fields.ts";

test("the fields that paths carry come from the annotations of all methods", () => {
  const named = (name: keyof typeof LanceNamespaceService.method) =>
    pathFieldsOf(LanceNamespaceService.method[name]).map((field) => field.name);
  assert.deepEqual(named("dropTableIndex"), ["identifier", "index_name"]);
  assert.deepEqual(named("countTableRows"), ["identifier"]);
  assert.deepEqual(named("listAllTables"), []);
});
