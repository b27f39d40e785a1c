import assert from "node:assert/strict";
import { create, type DescMethod } from "@bufbuild/protobuf";
import { describe, it } from "vitest";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { isReadAction } from "../call/principal.ts";
import type { Identifier } from "../identifier.ts";
import { CHANGE_TYPES } from "./change-types.ts";
import { changesOf } from "./changes.ts";
import { OPERATIONS } from "./operations.ts";
import type { AnyOperation } from "./touch.ts";

const { method } = LanceNamespaceService;

/** Operations that are writes by the rights that they need, and change nothing that others see. */
const UNSEEN = [
  ...["createMultipartWrite", "abortMultipartWrite", "cancelJob", "createView", "dropView"],
  ...["reportDriverProgress", "commitDriverVersion", "finishDriverTask"],
  ...["createFunction", "describeFunction", "listFunctions", "dropFunction", "listFunctionErrors"],
  ...["createSecret", "alterSecret", "describeSecret", "dropSecret", "listSecrets"],
  ...["manageLsm", "manageFunctions", "manageViews", "manageSecrets", "manageAuthorization", "manageJobs"],
  ...["listKeys", "createKey", "revokeKey", "listRoles", "listPolicies", "tryAccess"],
];

/** Returns the changes of a request, as texts. */
async function changed(
  { localName, input }: DescMethod,
  init: object,
  id: Identifier = [],
): Promise<string[]> {
  const changes = await changesOf(localName as AnyOperation, create(input, init as never), id);
  return changes.map(({ type, operation, id: path, to, entry }) =>
    [type, operation, path.join("/"), to && `to ${to.join("/")}`, entry]
      .filter((each) => each !== undefined)
      .join(" "),
  );
}

describe("the changes of operations", () => {
  it("are there for every operation that writes, except for those that nobody sees, and for no read", () => {
    const all = Object.values(OPERATIONS);
    const silent = all.filter(({ action, event }) => !isReadAction(action) && event === undefined);
    assert.deepEqual(silent.map(({ method: { localName } }) => localName).sort(), UNSEEN.sort());
    assert.deepEqual(
      all.filter(({ action, event }) => isReadAction(action) && event !== undefined),
      [],
    );
  });

  it("fit the kind of the object, and all kinds of changes occur", () => {
    for (const { event, kind, method } of Object.values(OPERATIONS)) {
      if (event !== undefined && kind !== "Database")
        assert.ok(event.startsWith(`${kind.toLowerCase()}.`), method.name);
    }
    const seen = new Set<unknown>(Object.values(OPERATIONS).map(({ event }) => event));
    assert.deepEqual(
      CHANGE_TYPES.filter((type) => !seen.has(type)),
      [],
    );
  });

  it("have the new name of a table", async () => {
    assert.deepEqual(await changed(method.renameTable, { newTableName: "b" }, ["n", "a"]), [
      "table.renamed renameTable n/a to n/b",
    ]);
    const init = { newTableName: "b", newNamespaceId: ["m"] };
    assert.deepEqual(await changed(method.renameTable, init, ["n", "a"]), [
      "table.renamed renameTable n/a to m/b",
    ]);
  });

  it("of a commit are those of its entries", async () => {
    const operations = [
      { operation: { case: "declareTable", value: { id: ["a"] } } },
      { operation: { case: "createTableVersion", value: { id: ["n", "b"] } } },
      { operation: { case: "deleteTableVersions", value: { id: ["c"] } } },
      { operation: { case: "deregisterTable", value: { id: ["d"] } } },
    ];
    assert.deepEqual(await changed(method.batchCommitTables, { operations }), [
      "table.declared declareTable a 0",
      "table.data_changed createTableVersion n/b 1",
      "table.versions_deleted batchDeleteTableVersions c 2",
      "table.deregistered deregisterTable d 3",
    ]);
    assert.deepEqual(
      await changed(method.batchCreateTableVersions, { entries: [{ id: ["a"] }, { id: ["b"] }] }),
      ["table.data_changed createTableVersion a 0", "table.data_changed createTableVersion b 1"],
    );
    assert.deepEqual(await changed(method.batchCommitTables, {}), []);
  });

  it("of a transaction are those of its table", async () => {
    assert.deepEqual(await changed(method.alterTransaction, {}, ["n", "t", "7"]), [
      "table.transaction_changed alterTransaction n/t",
    ]);
  });
});
