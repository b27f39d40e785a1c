import assert from "node:assert/strict";
import { pino } from "pino";
import { afterAll, beforeAll, describe, test } from "vitest";
import { drawKey } from "../../src/auth/api-keys/key-file.ts";
import { proveByKeys } from "../../src/auth/api-keys/key-ring.ts";
import { createAuthenticator } from "../../src/auth/authenticator.ts";
import { createOpaAuthorizer } from "../../src/auth/opa/opa.ts";
import { createOpaServer } from "../../src/auth/opa/server.ts";
import { type ErrorName, errorEntry } from "../../src/namespace/errors.ts";
import { type AskedAccess, type AskedRequest, allowing, startOpa } from "../fixtures/auth/opa.ts";
import { CallError, type Failure, type LanceClient, type ProtocolClient } from "../support/client.ts";
import { createProtocolClients, PROTOCOLS } from "../support/protocols.ts";
import { type DirectoryServer, startDirectoryServer } from "../support/server.ts";

const key = drawKey();
const record = { hash: "", name: "ann", role: "none", created: "2026-01-01T00:00:00.000Z" } as const;
const ring = { find: () => ({ ...record, id: key.id }), close() {} };

/** The policy: everything but two tables, of which one exists, and no change of what is in `fixed`. */
function allows({ action, resource }: AskedAccess): boolean {
  if (["team$salaries", "team$missing"].includes(resource.id)) return false;
  return !resource.within.includes("Namespace::fixed") || action.kind !== "manage";
}

async function failureOf(call: Promise<unknown>): Promise<Failure | undefined> {
  return call.then(
    () => undefined,
    (error: unknown) => (error instanceof CallError ? error.failure : Promise.reject(error)),
  );
}

function failure(protocol: string, name: ErrorName): Failure {
  const { code, httpStatus, grpcCode } = errorEntry(name);
  return protocol === "REST" ? { code, httpStatus } : { code, grpcCode };
}

describe("callers under a policy server", () => {
  const closings: (() => unknown)[] = [];
  const state = { away: false, open: false };
  let asked: readonly AskedRequest[];
  let server: DirectoryServer;
  let clients: Readonly<Record<string, ProtocolClient>>;

  beforeAll(async () => {
    const answer = allowing((access) => state.open || allows(access));
    const opa = await startOpa(
      (close) => closings.push(close),
      (response, request) => {
        if (state.away) response.writeHead(500).end();
        else answer(response, request);
      },
    );
    asked = opa.asked;
    const log = pino({ level: "silent" });
    const policies = createOpaServer({
      url: `${opa.origin}/v1/data/lance/gateway/allowed`,
      timeoutMs: 60_000,
    });
    const authorizer = createOpaAuthorizer({ server: policies, maxAgeMs: 0, log });
    const authenticator = createAuthenticator([proveByKeys(ring)], { failed: () => 0 });
    server = await startDirectoryServer({}, { authenticator, authorizer });
    clients = createProtocolClients(server.port, { "x-api-key": key.text });
    const gRPC = clients["gRPC"]?.client as LanceClient;
    state.open = true;
    for (const id of [["team"], ["fixed"]]) await gRPC.createNamespace({ id });
    for (const name of ["a", "people", "salaries", "z"]) await gRPC.declareTable({ id: ["team", name] });
    state.open = false;
  });
  afterAll(async () => {
    for (const { close } of Object.values(clients)) close();
    await server.close();
    for (const close of closings) close();
  });

  for (const protocol of Object.keys(PROTOCOLS)) {
    const clientOf = () => clients[protocol]?.client as LanceClient;

    test(`${protocol}: a call asks about all of its objects in one question, and fails if one is refused`, async () => {
      const before = asked.length;
      const id = ["team", "a"];
      const rename = clientOf().renameTable({ id, newTableName: "b", newNamespaceId: ["fixed"] });
      assert.deepEqual(await failureOf(rename), failure(protocol, "PermissionDenied"));
      assert.deepEqual(
        asked.slice(before).map(({ input }) => input.accesses.map(({ resource }) => resource.id)),
        [["team$a", "fixed$b"]],
      );
      assert.ok(await clientOf().describeTable({ id }));
    });

    test(`${protocol}: a hidden table and a missing one get the same answer`, async () => {
      const refused = failure(protocol, "PermissionDenied");
      for (const name of ["salaries", "missing"]) {
        const id = ["team", name];
        assert.deepEqual(await failureOf(clientOf().describeTable({ id })), refused, name);
        assert.deepEqual(await failureOf(clientOf().tableExists({ id })), refused, name);
      }
    });

    test(`${protocol}: a listing is filtered by one question about the page`, async () => {
      const before = asked.length;
      assert.deepEqual((await clientOf().listTables({ id: ["team"] })).tables, ["a", "people", "z"]);
      const [own, entries, ...rest] = asked.slice(before).map(({ input }) => input.accesses.length);
      assert.deepEqual([own, entries, rest], [2, 4, []]);
    });

    test(`${protocol}: nothing is allowed while the server fails, and 503 says that it may be repeated`, async () => {
      state.away = true;
      try {
        const described = clientOf().describeTable({ id: ["team", "a"] });
        assert.deepEqual(await failureOf(described), failure(protocol, "ServiceUnavailable"));
      } finally {
        state.away = false;
      }
      assert.ok(await clientOf().describeTable({ id: ["team", "a"] }));
    });
  }
});
