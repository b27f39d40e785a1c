import assert from "node:assert/strict";
import { afterAll, beforeAll, describe, test } from "vitest";
import { drawKey, type KeyRecord, type NewKey } from "../../src/auth/api-keys/key-file.ts";
import { type KeyRefusal, proveByKeys } from "../../src/auth/api-keys/key-ring.ts";
import { createAuthenticator } from "../../src/auth/authenticator.ts";
import { LanceNamespaceService } from "../../src/gen/lance/namespace/v1/service_pb.ts";
import { ROLE_NAMES, ROLES, type Role } from "../../src/namespace/call/principal.ts";
import { type ErrorName, errorEntry } from "../../src/namespace/errors.ts";
import type { Operation } from "../../src/namespace/lance-namespace.ts";
import { actionOf } from "../../src/namespace/operations/method-facts.ts";
import { people, personStream } from "../support/arrow.ts";
import {
  CallError,
  type Failure,
  type Headers,
  type LanceClient,
  type ProtocolClient,
} from "../support/client.ts";
import { ALL_OPERATIONS, callBare } from "../support/operations.ts";
import { createProtocolClients, PROTOCOLS } from "../support/protocols.ts";
import { type DirectoryServer, startDirectoryServer } from "../support/server.ts";

const TABLE = ["team", "people"];
const keys = Object.fromEntries(ROLE_NAMES.map((role) => [role, drawKey()])) as Record<Role, NewKey>;

/** A ring with a key of each role, and one that has expired. */
const expired = drawKey();
const ring = {
  find(text: string): KeyRecord | KeyRefusal {
    if (text === expired.text) return "expired";
    const role = ROLE_NAMES.find((name) => keys[name].text === text);
    const facts = { hash: "", created: "2026-01-01T00:00:00.000Z" };
    return role === undefined ? "unknown" : { ...facts, id: keys[role].id, name: `a ${role}`, role };
  },
  close() {},
};
const authenticator = createAuthenticator([proveByKeys(ring)], { failed: () => 0 });

/** The key that each caller sends. */
const CALLERS = {
  owner: keys.owner.text,
  writer: keys.writer.text,
  reader: keys.reader.text,
  none: keys.none.text,
  nobody: undefined,
  stranger: drawKey().text,
  late: expired.text,
} as const;
type Caller = keyof typeof CALLERS;

async function failureOf(call: Promise<unknown>): Promise<Failure | undefined> {
  return call.then(
    () => undefined,
    (error: unknown) => {
      if (error instanceof CallError) return error.failure;
      throw error;
    },
  );
}

/** Returns the form that the failure of a row of the error table has on a protocol. */
function failure(protocol: string, name: ErrorName): Failure {
  const { code, httpStatus, grpcCode } = errorEntry(name);
  return protocol === "REST" ? { code, httpStatus } : { code, grpcCode };
}

describe("callers with API keys", () => {
  let server: DirectoryServer;
  const clients = new Map<Caller, Readonly<Record<string, ProtocolClient>>>();
  beforeAll(async () => {
    server = await startDirectoryServer({}, { authenticator });
    for (const [caller, key] of Object.entries(CALLERS)) {
      const headers: Headers = key === undefined ? {} : { "x-api-key": key };
      clients.set(caller as Caller, createProtocolClients(server.port, headers));
    }
    const owner = clientOf("owner", "gRPC");
    await owner.createNamespace({ id: ["team"] });
    await owner.createTable({ id: TABLE }, personStream(people(5)));
  });
  afterAll(async () => {
    for (const { close } of [...clients.values()].flatMap(Object.values<ProtocolClient>)) close();
    await server.close();
  });

  const clientOf = (caller: Caller, protocol: string) =>
    clients.get(caller)?.[protocol]?.client as LanceClient;
  const bare = (caller: Caller, protocol: string, operation: Operation, id = TABLE) =>
    failureOf(callBare(clientOf(caller, protocol), operation, id));

  for (const protocol of Object.keys(PROTOCOLS)) {
    test(`${protocol}: nobody gets an answer without a key that is known and valid`, async () => {
      for (const operation of ALL_OPERATIONS) {
        assert.deepEqual(await bare("nobody", protocol, operation), failure(protocol, "Unauthenticated"));
      }
      for (const who of ["stranger", "late"] as const) {
        assert.deepEqual(await bare(who, protocol, "describeTable"), failure(protocol, "Unauthenticated"));
      }
    });

    for (const role of ["writer", "reader", "none"] as const) {
      test(`${protocol}: the role ${role} is refused what it does not allow, and nothing else`, async () => {
        const allowed: readonly string[] = ROLES[role];
        const refused = failure(protocol, "PermissionDenied");
        for (const operation of ALL_OPERATIONS) {
          const isAllowed = allowed.includes(actionOf(LanceNamespaceService.method[operation]));
          // A table that does not exist stays so, whatever the operation.
          const outcome = await bare(role, protocol, operation, ["team", "missing"]);
          if (isAllowed) assert.notDeepEqual(outcome, refused, operation);
          else assert.deepEqual(outcome, refused, operation);
        }
      });
    }

    test(`${protocol}: a caller without a right cannot tell an object that exists from one that does not`, async () => {
      const call = async (id: string[]) => {
        const error = await clientOf("none", protocol)
          .describeTable({ id })
          .catch((thrown: CallError) => thrown);
        return String((error as CallError).message).replace(id.join("$"), "OBJECT");
      };
      assert.equal(await call(TABLE), await call(["team", "absent"]));
    });
  }

  test("a key in the request's identity counts, and a header overrides it", async () => {
    const identity = { apiKey: keys.reader.text };
    assert.ok(await clientOf("nobody", "gRPC").describeTable({ id: TABLE, identity }));
    assert.deepEqual(
      await failureOf(clientOf("stranger", "gRPC").describeTable({ id: TABLE, identity })),
      failure("gRPC", "Unauthenticated"),
    );
  });
});

describe("a gateway for reading only", () => {
  test("refuses everything that writes, on every protocol", async ({ onTestFinished }) => {
    const server = await startDirectoryServer({ readOnly: true });
    const clients = createProtocolClients(server.port);
    onTestFinished(async () => {
      for (const { close } of Object.values(clients)) close();
      await server.close();
    });
    for (const [protocol, { client }] of Object.entries(clients)) {
      for (const operation of ALL_OPERATIONS) {
        const reads = (ROLES.reader as readonly string[]).includes(
          actionOf(LanceNamespaceService.method[operation]),
        );
        const outcome = await failureOf(callBare(client, operation, ["t"]));
        const refused = failure(protocol, "PermissionDenied");
        if (reads) assert.notDeepEqual(outcome, refused, operation);
        else assert.deepEqual(outcome, refused, operation);
      }
    }
  });
});
