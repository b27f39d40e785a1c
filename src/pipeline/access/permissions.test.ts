import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { describe, it } from "vitest";
import { beginCall } from "../../../test/support/caller.ts";
import { fakeBackend } from "../../../test/support/server.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { isLanceError, LanceError } from "../../namespace/errors.ts";
import type { ObjectKind } from "../../namespace/operations/touch.ts";
import { createPropertyLookup } from "./permissions.ts";

const { describeNamespace, describeTable, queryTable } = LanceNamespaceService.method;

/** Creates a lookup in a backend whose tables are described by a function, and whose namespaces have their path as a property. */
function lookupIn(describe: () => Record<string, string>) {
  const asked: string[] = [];
  const backend = fakeBackend({
    async describeTable({ vendCredentials }, { id }) {
      asked.push(`${id.join("$")} ${vendCredentials}`);
      return create(describeTable.output, { properties: describe() });
    },
    async describeNamespace(_, { id }) {
      return create(describeNamespace.output, { properties: { path: id.join("$") } });
    },
  });
  const databases = new Map([[undefined, { backend, limits: { maxUploadBytes: 1 } }]]);
  const lookUp = createPropertyLookup(databases);
  const touch = (kind: ObjectKind, ...id: string[]) => ({ operation: "queryTable" as const, kind, id });
  return { asked, lookUp, touch, call: beginCall(queryTable) };
}

describe("the properties of an object", () => {
  it("are asked for once in a call, without credentials", async () => {
    const { asked, lookUp, touch, call } = lookupIn(() => ({ class: "public" }));
    for (let i = 0; i < 2; i++)
      assert.deepEqual(await lookUp(call, touch("Table", "a", "t")), { class: "public" });
    await lookUp(beginCall(queryTable), touch("Table", "a", "t"));
    assert.deepEqual(asked, ["a$t false", "a$t false"]);
  });

  it("are those of a namespace, and of the root for a database", async () => {
    const { lookUp, touch, call } = lookupIn(() => ({}));
    assert.deepEqual(await lookUp(call, touch("Namespace", "a", "b")), { path: "a$b" });
    assert.deepEqual(await lookUp(call, touch("Database")), { path: "" });
  });

  it("are none if the object, or a namespace around it, does not exist", async () => {
    for (const kind of ["TableNotFound", "NamespaceNotFound"] as const) {
      const { lookUp, touch, call } = lookupIn(() => {
        throw new LanceError(kind, "missing");
      });
      assert.deepEqual(await lookUp(call, touch("Table", "t")), {});
    }
  });

  it("fail without a word about the object if the backend fails", async () => {
    const { lookUp, touch, call } = lookupIn(() => {
      throw new LanceError("Internal", "the table secret is damaged");
    });
    await assert.rejects(lookUp(call, touch("Table", "secret")), (error: Error) => {
      assert.doesNotMatch(error.message, /secret/);
      return isLanceError(error, "ServiceUnavailable");
    });
  });
});
