import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { test } from "vitest";
import { takeAllFor } from "../../../test/fixtures/auth/authenticator.ts";
import { ann } from "../../../test/fixtures/auth/principal.ts";
import { createCaller } from "../../../test/support/caller.ts";
import { CreateTableMode, CreateTableResponseSchema } from "../../gen/lance/namespace/v1/data_pb.ts";
import {
  CreateNamespaceMode,
  CreateNamespaceResponseSchema,
} from "../../gen/lance/namespace/v1/namespace_pb.ts";
import type { Backend } from "../../namespace/lance-namespace.ts";

const properties = { owner: "somebody else" };

/** A catalog in which everything exists already. */
const backend: Backend = {
  name: "memory",
  operations: {
    createNamespace: async () => create(CreateNamespaceResponseSchema, { properties }),
    createTable: async () => create(CreateTableResponseSchema, { properties }),
  },
  ready: async () => true,
  close: async () => {},
};

/** A caller who may create everything, and describe it if `mayDescribe` says so. */
function callerWho(mayDescribe: boolean) {
  return createCaller({
    backend,
    limits: { maxUploadBytes: 1_000 },
    authenticator: takeAllFor(ann),
    authorizer: { allows: (_, { action }) => mayDescribe || action !== "describe", close() {} },
  });
}

test("a creation shows the properties of what existed to those who may describe it", async () => {
  for (const [mayDescribe, shown] of [
    [true, properties],
    [false, { mine: "yes" }],
  ] as const) {
    const caller = callerWho(mayDescribe);
    const request = { id: ["n"], properties: { mine: "yes" } };
    const namespace = await caller.createNamespace({ ...request, mode: CreateNamespaceMode.EXIST_OK });
    assert.deepEqual(namespace.properties, shown);
    const body = new Uint8Array();
    const table = await caller.createTable({ ...request, mode: CreateTableMode.EXIST_OK }, body);
    assert.deepEqual(table.properties, shown);
  }
});
