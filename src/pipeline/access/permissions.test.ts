import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { pino } from "pino";
import { describe, expect, it, test } from "vitest";
import { beginCall } from "../../../test/support/caller.ts";
import { fakeBackend } from "../../../test/support/server.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { type Call, createCall } from "../../namespace/call/call.ts";
import type { Action, Principal } from "../../namespace/call/principal.ts";
import { isLanceError, LanceError } from "../../namespace/errors.ts";
import type { Backend, LanceNamespace } from "../../namespace/lance-namespace.ts";
import type { ObjectKind } from "../../namespace/operations/touch.ts";
import type { OperationRequest } from "../call/interceptor.ts";
import { createPropertyLookup, tellPermissions } from "./permissions.ts";

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

interface Caller {
  readonly asks?: string;
  readonly may?: (action: Action) => boolean | Promise<boolean>;
  readonly isReadOnly?: boolean;
  readonly principal?: Principal;
  /** Operations of the backend. Default: none. */
  readonly operations?: Backend["operations"];
  /** Where the backend has its data. Default: it does not say. */
  readonly place?: string;
  /** Object of the call. Default: the root. */
  readonly id?: Call["id"];
}

/** Returns the headers with which the step answers a caller. */
async function headersFor({
  asks = "permissions",
  may,
  isReadOnly = false,
  principal,
  operations = {},
  place,
  id = [],
}: Caller) {
  const call = createCall({
    method: LanceNamespaceService.method.describeTable,
    ...{ protocol: "connect", requestId: "1", deadline: undefined, accept: undefined },
    headers: { "x-lance-gateway-tell": asks },
    signal: new AbortController().signal,
    log: pino({ level: "silent" }),
  });
  call.may = may;
  call.principal = principal;
  call.id = id;
  const backend: Backend = {
    name: "glue",
    place,
    operations,
    ready: async () => true,
    close: async () => {},
  };
  const databases = new Map([[undefined, { backend, limits: { maxUploadBytes: 7 } }]]);
  await tellPermissions(isReadOnly, databases, "1.2.3")(
    call,
    {} as OperationRequest,
    async () => ({}) as never,
  );
  return call.responseHeaders;
}

/** Returns what the step tells a caller; undefined if it tells nothing. */
async function told(caller: Caller) {
  return (await headersFor(caller))["x-lance-gateway-permissions"];
}

test("a gateway that asks nobody allows everything", async () => {
  expect(await told({})).toBe("list, describe, read, write, manage, admin");
});

test("a caller learns what its role or its policies allow", async () => {
  expect(await told({ may: (action) => action === "read" })).toBe("read");
  expect(await told({ may: async () => false })).toBe("");
});

test("a gateway for reading only names no writes, whatever the role is", async () => {
  expect(await told({ may: () => true, isReadOnly: true })).toBe("list, describe, read");
});

test("a caller learns how much its database takes in an upload", async () => {
  expect(await headersFor({})).toMatchObject({ "x-lance-gateway-max-upload-bytes": "7" });
});

test("a caller learns the version of the gateway", async () => {
  expect(await headersFor({})).toMatchObject({ "x-lance-gateway-version": "1.2.3" });
});

test("a caller that does not ask is told nothing", async () => {
  expect(await told({ asks: "something else" })).toBeUndefined();
});

test("a caller learns the name by which policies know it, in characters that a header can have", async () => {
  const principal = {
    by: "oidc",
    name: "Zoë, sales",
    credentialId: "1",
    role: "reader",
    groups: [],
    claims: {},
  } as const;
  expect(await headersFor({ principal })).toMatchObject({
    "x-lance-gateway-principal": "oidc%3AZo%C3%AB%2C%20sales",
  });
  expect(await headersFor({ principal, asks: "other" })).toEqual({});
});

test("a caller learns whose catalog it is, and which operations it does not support", async () => {
  const missing = ["dropTable", "renameTable"];
  const operations = Object.fromEntries(
    Object.keys(LanceNamespaceService.method)
      .filter((name) => !missing.includes(name))
      .map((name) => [name, async () => ({})]),
  ) as unknown as LanceNamespace;
  expect(await headersFor({ operations })).toMatchObject({
    "x-lance-gateway-backend": "glue",
    "x-lance-gateway-unsupported": "dropTable, renameTable",
  });
});

test("a caller who may list the root learns where its data is, in characters that a header can have", async () => {
  const place = "/srv/Größe 1/data";
  const header = "x-lance-gateway-storage";
  expect(decodeURIComponent((await headersFor({ place }))[header] ?? "")).toBe(place);
  expect(await headersFor({ place, may: (action) => action === "list" })).toHaveProperty(header);
  expect(await headersFor({ place, may: (action) => action !== "list" })).not.toHaveProperty(header);
  expect(await headersFor({ place, id: ["team"] })).not.toHaveProperty(header);
  expect(await headersFor({})).not.toHaveProperty(header);
});
