import assert from "node:assert/strict";
import { hasOption } from "@bufbuild/protobuf";
import { describe, it } from "vitest";
import { Health } from "../../gen/grpc/health/v1/health_pb.ts";
import { AccessService } from "../../gen/lance/gateway/v1/access_pb.ts";
import { DriverService } from "../../gen/lance/gateway/v1/driver_pb.ts";
import { LanceDbService } from "../../gen/lance/gateway/v1/lancedb_pb.ts";
import { ViewService } from "../../gen/lance/gateway/v1/sql_view_pb.ts";
import { operation } from "../../gen/lance/namespace/v1/options_pb.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { factsOf, OPERATIONS, readFacts } from "./operations.ts";

const METHODS = [
  ...LanceNamespaceService.methods,
  ...LanceDbService.methods,
  ...ViewService.methods,
  ...DriverService.methods,
  ...AccessService.methods,
];

describe("the facts about operations", () => {
  it("are stated beside every rpc of the services", () => {
    const without = METHODS.filter((method) => !hasOption(method, operation));
    assert.deepEqual(without.map(String), []);
  });

  it("are in a table for every method, and for nothing else", () => {
    assert.deepEqual(Object.keys(OPERATIONS).sort(), METHODS.map(({ localName }) => localName).sort());
    assert.equal(factsOf("eraseEverything"), undefined);
    assert.equal(factsOf("toString"), undefined);
  });

  it("are required: a method without them stops the start, and the error names it", () => {
    assert.throws(() => readFacts(Health.method.check), /Health\.Check needs the option "operation"/);
  });
});
