import { pino } from "pino";
import { expect, test } from "vitest";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { type Call, createCall } from "../../namespace/call/call.ts";
import type { Action, Principal } from "../../namespace/call/principal.ts";
import type { Backend, LanceNamespace } from "../../namespace/lance-namespace.ts";
import type { OperationRequest } from "../call/interceptor.ts";
import { tellPermissions } from "./tell-permissions.ts";

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
