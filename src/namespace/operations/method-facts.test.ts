import assert from "node:assert/strict";
import { describe, it, test } from "vitest";
import { Health } from "../../gen/grpc/health/v1/health_pb.ts";
import { DriverService } from "../../gen/lance/gateway/v1/driver_pb.ts";
import { LanceDbService } from "../../gen/lance/gateway/v1/lancedb_pb.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { actionOf, isRead, pathFieldsOf } from "./method-facts.ts";

const METHODS = [...LanceNamespaceService.methods, ...LanceDbService.methods, ...DriverService.methods];

describe("the kinds of operations", () => {
  it("cover every method of the contract", () => {
    // Methods for the operation of the service are the only ones that may look like an unknown one.
    const ofService = /^Manage|(?:Functions?|FunctionErrors|Secrets?)$/;
    const unknown = METHODS.filter((method) => actionOf(method) === "admin" && !ofService.test(method.name));
    assert.deepEqual(
      unknown.map(({ name }) => name),
      [],
    );
  });

  it("count as reads only methods whose names say so", () => {
    const suspicious = METHODS.filter(
      (method) =>
        isRead(method) &&
        !/^(?:List|Describe|Get|Query|Count|Explain|Analyze|Fetch|Read|Prewarm|Diff)|Exists$/.test(
          method.name,
        ),
    );
    assert.deepEqual(suspicious, []);
  });

  it("need the most for a method that nobody has classified", () => {
    assert.equal(actionOf(Health.method.check), "admin");
    assert.equal(isRead(Health.method.check), false);
  });
});

test("the fields that paths carry come from the annotations of all methods", () => {
  const named = (name: keyof typeof LanceNamespaceService.method) =>
    pathFieldsOf(LanceNamespaceService.method[name]).map((field) => field.name);
  assert.deepEqual(named("dropTableIndex"), ["identifier", "index_name"]);
  assert.deepEqual(named("countTableRows"), ["identifier"]);
  assert.deepEqual(named("listAllTables"), []);
});
