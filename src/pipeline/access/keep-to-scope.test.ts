import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { describe, it } from "vitest";
import { beginCall } from "../../../test/support/caller.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { isLanceError } from "../../namespace/errors.ts";
import type { Identifier } from "../../namespace/identifier.ts";
import type { Database, Databases } from "../call/databases.ts";
import type { OperationRequest } from "../call/interceptor.ts";
import { keepToScope } from "./keep-to-scope.ts";

const { describeTable } = LanceNamespaceService.method;
const [sales, main] = [{}, {}] as unknown as [Database, Database];

/** Whether a key with a scope may describe a table of a database. */
async function mayDescribe(
  databases: Databases,
  scope: Identifier,
  database: string | undefined,
  id: Identifier,
): Promise<boolean> {
  const call = beginCall(describeTable, { id });
  call.database = database;
  call.principal = {
    ...{ by: "api-key", name: "ann", credentialId: "1", role: "owner", groups: [], claims: {} },
    scope: [scope],
  };
  const message = create(describeTable.input);
  const request: OperationRequest = { kind: "unary", operation: "describeTable", message };
  const step = keepToScope(databases);
  try {
    await step(call, request, async () => create(describeTable.output) as never);
    return true;
  } catch (error) {
    assert.ok(isLanceError(error, "PermissionDenied"), String(error));
    return false;
  }
}

describe("the scope of a key", () => {
  it("begins with the name of the database, also for calls that leave it to the default", async () => {
    const databases: Databases = new Map([
      ["sales", sales],
      ["main", main],
      [undefined, main],
    ]);
    // A namespace of the default database may have the name of another database.
    assert.equal(await mayDescribe(databases, ["sales"], undefined, ["sales", "t"]), false);
    assert.equal(await mayDescribe(databases, ["sales"], "sales", ["t"]), true);
    assert.equal(await mayDescribe(databases, ["main", "raw"], undefined, ["raw", "t"]), true);
    assert.equal(await mayDescribe(databases, ["main", "raw"], "main", ["raw", "t"]), true);
    assert.equal(await mayDescribe(databases, ["main", "raw"], undefined, ["t"]), false);
  });

  it("begins with the object in an only database without a name", async () => {
    const databases: Databases = new Map([[undefined, main]]);
    assert.equal(await mayDescribe(databases, ["raw"], undefined, ["raw", "t"]), true);
    assert.equal(await mayDescribe(databases, ["raw"], undefined, ["t"]), false);
  });
});
