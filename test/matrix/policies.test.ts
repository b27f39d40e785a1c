import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pino } from "pino";
import { afterAll, beforeAll, describe, test } from "vitest";
import { drawKey, type KeyRecord, type NewKey } from "../../src/auth/api-keys/key-file.ts";
import { type KeyRefusal, proveByKeys } from "../../src/auth/api-keys/key-ring.ts";
import { createAuthenticator } from "../../src/auth/authenticator.ts";
import { openPolicyFolder } from "../../src/auth/cedar/policy-folder.ts";
import { rolePolicies } from "../../src/auth/cedar/read-policies.ts";
import { CreateNamespaceMode, DropNamespaceBehavior } from "../../src/gen/lance/namespace/v1/namespace_pb.ts";
import { LanceNamespaceService } from "../../src/gen/lance/namespace/v1/service_pb.ts";
import { MaterializedViewKind } from "../../src/gen/lance/namespace/v1/view_pb.ts";
import { ROLES, type Role } from "../../src/namespace/call/principal.ts";
import { type ErrorName, errorEntry } from "../../src/namespace/errors.ts";
import { actionOf } from "../../src/namespace/operations/method-facts.ts";
import { people, personStream } from "../support/arrow.ts";
import { CallError, type Failure, type LanceClient, type ProtocolClient } from "../support/client.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { jsonOf, sendHttp } from "../support/http.ts";
import { ALL_OPERATIONS, callBare } from "../support/operations.ts";
import { createProtocolClients, PROTOCOLS } from "../support/protocols.ts";
import { type DirectoryServer, startDirectoryServer } from "../support/server.ts";

const POLICIES = `
@id("analyst")
permit (principal == User::"api-key:analyst", action in [Action::"list", Action::"describe", Action::"read"], resource in Namespace::"team");
@id("analyst-lists")
permit (principal == User::"api-key:analyst", action in Action::"list", resource);
@id("no-salaries")
forbid (principal, action, resource == Table::"team$salaries") unless { principal in Role::"owner" };
@id("analyst-tagged")
permit (principal == User::"api-key:analyst", action == Action::"DescribeNamespace", resource == Namespace::"tagged");
@id("analyst-public")
permit (principal == User::"api-key:analyst", action in [Action::"describe", Action::"read"], resource is Table in Namespace::"tagged")
when { resource.hasTag("class") && resource.getTag("class") == "public" };
@id("editor")
permit (principal == User::"api-key:editor", action, resource in Namespace::"own");
@id("no-drop")
forbid (principal == User::"api-key:editor", action, resource == Table::"own$deep$kept");
`;

/** The callers, each with a key and a role. */
const CALLERS = { root: "owner", reader: "reader", analyst: "none", editor: "none" } as const;
type Caller = keyof typeof CALLERS;
const names = Object.keys(CALLERS) as Caller[];
const keys = Object.fromEntries(names.map((name) => [name, drawKey()])) as Record<Caller, NewKey>;
const ring = {
  find(text: string): KeyRecord | KeyRefusal {
    const name = names.find((each) => keys[each].text === text);
    const facts = { hash: "", created: "2026-01-01T00:00:00.000Z" };
    return name === undefined ? "unknown" : { ...facts, id: keys[name].id, name, role: CALLERS[name] };
  },
  close() {},
};

/** The operations that only look at an object. */
const LOOKS = ["describeTable", "tableExists", "describeNamespace", "namespaceExists"] as const;

async function errorOf(call: Promise<unknown>): Promise<CallError | undefined> {
  return call.then(
    () => undefined,
    (error: unknown) => {
      if (error instanceof CallError) return error;
      throw error;
    },
  );
}

function failure(protocol: string, name: ErrorName): Failure {
  const { code, httpStatus, grpcCode } = errorEntry(name);
  return protocol === "REST" ? { code, httpStatus } : { code, grpcCode };
}

describe("callers under policies", () => {
  let server: DirectoryServer;
  let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
  const clients = new Map<Caller, Readonly<Record<string, ProtocolClient>>>();
  const clientOf = (caller: Caller, protocol: string) =>
    clients.get(caller)?.[protocol]?.client as LanceClient;

  beforeAll(async () => {
    directory = await temporaryDirectory();
    await writeFile(join(directory.path, "roles.cedar"), rolePolicies());
    await writeFile(join(directory.path, "team.cedar"), POLICIES);
    const log = pino({ level: "silent" });
    const authorizer = await openPolicyFolder({ directory: directory.path, log });
    const authenticator = createAuthenticator([proveByKeys(ring)], { failed: () => 0 });
    server = await startDirectoryServer({}, { authenticator, authorizer });
    for (const name of names) {
      clients.set(name, createProtocolClients(server.port, { "x-api-key": keys[name].text }));
    }
    const root = clientOf("root", "gRPC");
    for (const id of [["team"], ["team", "inner"], ["secret"], ["own"], ["own", "deep"], ["tagged"]]) {
      await root.createNamespace({ id });
    }
    for (const id of [
      ...["a", "people", "salaries", "z"].map((name) => ["team", name]),
      ...[["own", "mine"], ["own", "deep", "kept"], ["secret", "plans"], ["plain"]],
    ]) {
      await root.createTable({ id }, personStream(people(2)));
    }
    for (const [name, value] of [
      ["a", "secret"],
      ["b", "public"],
      ["c", ""],
      ["d", "public"],
    ]) {
      const properties: Record<string, string> = value ? { class: value } : {};
      await root.createTable({ id: ["tagged", `${name}`], properties }, personStream(people(2)));
    }
  });
  afterAll(async () => {
    for (const { close } of [...clients.values()].flatMap(Object.values<ProtocolClient>)) close();
    await server.close();
    await directory.remove();
  });

  test("a clone needs a right to read its source, and the refusal does not tell whether there is one", async () => {
    const { location = "" } = await clientOf("root", "gRPC").describeTable({ id: ["team", "salaries"] });
    const clone = async (caller: Caller, source: string) => {
      const body = JSON.stringify({ source_location: source });
      const headers = { "x-api-key": keys[caller].text };
      const answer = await sendHttp(server.port, { path: "/v1/table/own$copy/clone", headers, body });
      return [answer.status, jsonOf(answer)["error"]];
    };
    const [status, words] = await clone("editor", location);
    assert.equal(status, 403);
    assert.doesNotMatch(String(words), /salaries/);
    for (const source of ["team$salaries", "team$absent", "/absent"])
      assert.deepEqual(await clone("editor", source), [status, words], source);
    assert.deepEqual(await clone("editor", "own$mine"), [200, undefined]);
    assert.equal((await clone("root", "team$absent"))[0], 404);
  });

  test("only callers who may list the root learn where its data is", async () => {
    const told = async (caller: Caller | undefined, path: string) => {
      const headers = {
        "x-lance-gateway-tell": "permissions",
        ...(caller && { "x-api-key": keys[caller].text }),
      };
      const answer = await sendHttp(server.port, { method: "POST", path, headers, body: "{}" });
      return [answer.status, answer.headers["x-lance-gateway-storage"] !== undefined];
    };
    const root = "/v1/namespace/$/describe";
    for (const caller of ["root", "reader"] as const)
      assert.deepEqual(await told(caller, root), [200, true], caller);
    for (const caller of ["analyst", "editor"] as const)
      assert.deepEqual(await told(caller, root), [403, false], caller);
    assert.deepEqual(await told("analyst", "/v1/namespace/team/describe"), [200, false]);
    assert.deepEqual(await told(undefined, root), [401, false]);
  });

  for (const protocol of Object.keys(PROTOCOLS)) {
    const refused = failure(protocol, "PermissionDenied");

    test(`${protocol}: the policies of roles allow what the roles allow`, async () => {
      const role: Role = "reader";
      for (const operation of ALL_OPERATIONS) {
        const action = actionOf(LanceNamespaceService.method[operation]);
        const error = await errorOf(callBare(clientOf("reader", protocol), operation, ["own", "missing"]));
        if ((ROLES[role] as readonly string[]).includes(action)) {
          assert.notDeepEqual(error?.failure, refused, operation);
        } else assert.deepEqual(error?.failure, refused, operation);
      }
    });

    test(`${protocol}: a hidden object and a missing one get the same answer by every operation`, async () => {
      // The decision is the pipeline's, so that all operations on two protocols suffice.
      const operations = protocol === "gRPC" || protocol === "REST" ? ALL_OPERATIONS : LOOKS;
      for (const operation of operations) {
        const answer = async (id: string[]) => {
          const error = await errorOf(callBare(clientOf("analyst", protocol), operation, id));
          return [error?.failure, String(error?.message).replaceAll(id.join("$"), "OBJECT")];
        };
        assert.deepEqual(await answer(["secret", "plans"]), await answer(["secret", "absent"]), operation);
        assert.deepEqual(await answer(["secret"]), await answer(["absent"]), operation);
        assert.deepEqual(await answer(["tagged", "a"]), await answer(["tagged", "absent"]), operation);
      }
      for (const id of [["secret"], ["absent"]]) {
        const exists = await errorOf(clientOf("analyst", protocol).namespaceExists({ id }));
        assert.deepEqual(exists?.failure, refused);
        const lists = await errorOf(clientOf("analyst", protocol).listTables({ id }));
        assert.deepEqual(lists?.failure, refused);
      }
    });

    test(`${protocol}: listings show what the caller may see, in full pages`, async () => {
      const analyst = clientOf("analyst", protocol);
      const seen: string[][] = [];
      for (let pageToken: string | undefined; ; ) {
        const page = await analyst.listTables({ id: ["team"], limit: 2, pageToken });
        seen.push([...page.tables]);
        if (!page.pageToken) break;
        assert.doesNotMatch(page.pageToken, /salaries/);
        pageToken = page.pageToken;
      }
      assert.deepEqual(seen, [["a", "people"], ["z"]]);
      assert.deepEqual((await analyst.listNamespaces({ id: [] })).namespaces, ["tagged", "team"]);
      assert.deepEqual((await analyst.listTables({ id: [] })).tables, []);
      assert.deepEqual((await analyst.listAllTables({})).tables, []);
      assert.deepEqual((await clientOf("root", protocol).listTables({ id: ["team"] })).tables, [
        ...["a", "people", "salaries", "z"],
      ]);
    });

    test(`${protocol}: policies decide by the properties of a table`, async () => {
      const analyst = clientOf("analyst", protocol);
      const ids = ["a", "b", "c", "d"].map((name) => ["tagged", name]);
      const failures = await Promise.all(
        ids.map(async (id) => (await errorOf(analyst.countTableRows({ id })))?.failure),
      );
      assert.deepEqual(failures, [refused, undefined, refused, undefined]);
      assert.deepEqual((await analyst.listTables({ id: ["tagged"] })).tables, ["b", "d"]);
      assert.deepEqual((await analyst.listTables({ id: ["tagged"], limit: 1 })).tables, ["b"]);
    });

    test(`${protocol}: every object of a request needs a right, not only the first one`, async () => {
      const editor = clientOf("editor", protocol);
      const mine = ["own", "mine"];
      const cases: Record<string, Promise<unknown>> = {
        "a rename's namespace": editor.renameTable({ id: mine, newTableName: "x", newNamespaceId: ["team"] }),
        "a table that a view reads": editor.createMaterializedView({
          id: ["own", "view"],
          kind: MaterializedViewKind.QUERY,
          sourceQuery: 'SELECT * FROM team."salaries"',
        }),
        "an entry of a commit": editor.batchCommitTables({
          operations: [
            { operation: { case: "declareTable", value: { id: ["own", "new"] } } },
            { operation: { case: "deregisterTable", value: { identifier: "team.a", delimiter: "." } } },
          ],
        }),
        "an entry of versions": editor.batchCreateTableVersions({
          entries: [{ id: ["team", "a"], version: 2n, manifestPath: "x" }],
        }),
        "a transaction's table": editor.describeTransaction({ id: ["team", "a", "1"] }),
        "a table below a namespace": editor.dropNamespace({
          id: ["own"],
          behavior: DropNamespaceBehavior.CASCADE,
        }),
        "a table below a replaced namespace": editor.createNamespace({
          id: ["own"],
          mode: CreateNamespaceMode.OVERWRITE,
        }),
      };
      for (const [what, call] of Object.entries(cases)) {
        const error = await errorOf(call);
        assert.deepEqual(error?.failure, refused, what);
        assert.doesNotMatch(error?.message ?? "", /kept/, what);
      }
      assert.ok(await editor.describeTable({ id: mine }));
    });

    test(`${protocol}: a location tells nothing about the tables of the root`, async () => {
      const editor = clientOf("editor", protocol);
      for (const place of ["plain.lance", "absent.lance", "plain.lance/x", "absent.lance/x"]) {
        for (const location of [place, join(server.base, place)]) {
          const id = ["own", "placed"];
          const declared = { operation: { case: "declareTable" as const, value: { id, location } } };
          const calls = {
            declareTable: editor.declareTable({ id, location }),
            registerTable: editor.registerTable({ id, location }),
            batchCommitTables: editor.batchCommitTables({ operations: [declared] }),
          };
          for (const [operation, call] of Object.entries(calls))
            assert.deepEqual((await errorOf(call))?.failure, refused, `${operation} at ${location}`);
        }
      }
    });

    test(`${protocol}: a registration takes a root table without a row only from callers who may rename it`, async () => {
      const path = join(server.base, "unlisted.lance");
      await mkdir(path);
      await writeFile(join(path, ".lance-reserved"), "");
      const register = (caller: Caller) =>
        clientOf(caller, protocol).registerTable({ id: ["own", "taken"], location: "unlisted.lance" });
      assert.deepEqual((await errorOf(register("editor")))?.failure, refused);
      await register("root");
      await clientOf("root", protocol).dropTable({ id: ["own", "taken"] });
    });
  }
});
