import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pino } from "pino";
import { afterAll, beforeAll, describe, test } from "vitest";
import { drawKey, type KeyRecord } from "../../src/auth/api-keys/key-file.ts";
import { proveByKeys } from "../../src/auth/api-keys/key-ring.ts";
import { createAuthenticator } from "../../src/auth/authenticator.ts";
import { openPolicyFolder } from "../../src/auth/cedar/policy-folder.ts";
import { rolePolicies } from "../../src/auth/cedar/read-policies.ts";
import { LanceDbService } from "../../src/gen/lance/gateway/v1/lancedb_pb.ts";
import { allows, type Role } from "../../src/namespace/call/principal.ts";
import { actionOf } from "../../src/namespace/operations/method-facts.ts";
import { OPERATIONS } from "../../src/namespace/operations/operations.ts";
import type { AnyOperation } from "../../src/namespace/operations/touch.ts";
import type { Binding } from "../../src/transcode/binding.ts";
import { createTranscoder } from "../../src/transcode/transcoder.ts";
import { people, personStream } from "../support/arrow.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { jsonOf, sendHttp } from "../support/http.ts";
import { createProtocolClients } from "../support/protocols.ts";
import { type DirectoryServer, startDirectoryServer } from "../support/server.ts";

/** The routes of LanceDB's clients, which only REST has. */
const ROUTES = createTranscoder([LanceDbService]).bindings;

const POLICIES = `
permit (principal == User::"api-key:analyst", action, resource in Namespace::"team");
forbid (principal == User::"api-key:analyst", action, resource == Table::"team$salaries");
`;

const [owner, writer, reader, scoped, analyst] = [drawKey(), drawKey(), drawKey(), drawKey(), drawKey()];
const facts = { hash: "", created: "2026-01-01T00:00:00.000Z" } as const;
const records: readonly KeyRecord[] = [
  { ...facts, id: owner.id, name: "owner", role: "owner" },
  { ...facts, id: writer.id, name: "writer", role: "writer" },
  { ...facts, id: reader.id, name: "reader", role: "reader" },
  { ...facts, id: scoped.id, name: "scoped", role: "owner", scope: ["team"] },
  { ...facts, id: analyst.id, name: "analyst", role: "none" },
];
const texts = [owner, writer, reader, scoped, analyst].map(({ text }) => text);
const ring = { find: (text: string) => records[texts.indexOf(text)] ?? ("unknown" as const), close() {} };
const authenticator = createAuthenticator([proveByKeys(ring)], { failed: () => 0 });

const titleOf = ({ httpMethod, template: { source } }: Binding) => `${httpMethod} ${source}`;

/** Values of the parts of paths other than the object. */
const PARTS: Readonly<Record<string, string>> = { row_id: "0" };

/** Fields without which a request is a mistake, before anybody decides about it. */
const BODY = JSON.stringify({
  ...{ upload_id: "x", job_id: "x", column: "x", source_location: "x", row_ids: [], from_branch: "x" },
  sharding: { mode: "unsharded" },
});

/** Those of functions and secrets, whose versions are texts. */
const FUNCTION_BODY = JSON.stringify({ artifact: {}, signature: {}, runtime: {}, version: "1", value: "x" });

/** Sends a request with as few parameters as possible, about an object where the route names one. */
async function send(port: number, binding: Binding, key: string | undefined, id: string) {
  const { httpMethod: method, template, requestBody } = binding;
  const path = template.source.replaceAll(/\{(\w+)\}/g, (_, field: string) =>
    field === "identifier" ? encodeURIComponent(id) : (PARTS[field] ?? "x"),
  );
  const type = requestBody === "raw" ? "application/vnd.apache.arrow.stream" : "application/json";
  const headers = { "content-type": type, ...(key !== undefined && { "x-api-key": key }) };
  const body = requestBody === "none" ? undefined : requestBody === "raw" ? personStream([]) : bodyOf(path);
  const answer = await sendHttp(port, { method, path, headers, ...(body !== undefined && { body }) });
  return { status: answer.status, error: answer.status < 400 ? "" : String(jsonOf(answer)["error"]) };
}

function bodyOf(path: string): string {
  return /^\/v1\/(?:function|secret)\//.test(path) ? FUNCTION_BODY : BODY;
}

async function seed(server: DirectoryServer): Promise<void> {
  const { gRPC } = createProtocolClients(server.port, { "x-api-key": owner.text });
  for (const id of [["team"], ["teams"]]) await gRPC?.client.createNamespace({ id });
  for (const id of [
    ["team", "salaries"],
    ["teams", "people"],
  ])
    await gRPC?.client.createTable({ id }, personStream(people(2)));
  gRPC?.close();
}

describe("the routes of LanceDB's clients", () => {
  let server: DirectoryServer;
  beforeAll(async () => {
    server = await startDirectoryServer({}, { authenticator });
    await seed(server);
  });
  afterAll(() => server.close());

  test("give nobody an answer without a key", async () => {
    for (const route of ROUTES)
      assert.equal((await send(server.port, route, undefined, "team$salaries")).status, 401, titleOf(route));
  });

  test("refuse what a role does not allow, and nothing else", async () => {
    const keys: Partial<Record<Role, string>> = { writer: writer.text, reader: reader.text };
    for (const [role, key] of Object.entries(keys)) {
      for (const route of ROUTES) {
        const { status } = await send(server.port, route, key, "team$missing");
        const isAllowed = allows({ role: role as Role }, actionOf(route.method));
        assert.equal(status === 403, !isAllowed, `${titleOf(route)} as ${role}: ${status}`);
      }
    }
  });

  test("keep a key with a scope to its objects", async () => {
    for (const route of ROUTES)
      for (const id of ["teams$people", "teams", "teams$missing"])
        assert.equal(
          (await send(server.port, route, scoped.text, id)).status,
          403,
          `${titleOf(route)} ${id}`,
        );
  });
});

describe("the routes of LanceDB's clients under policies", () => {
  let server: DirectoryServer;
  let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
  beforeAll(async () => {
    directory = await temporaryDirectory();
    await writeFile(join(directory.path, "all.cedar"), rolePolicies() + POLICIES);
    const authorizer = await openPolicyFolder({ directory: directory.path, log: pino({ level: "silent" }) });
    server = await startDirectoryServer({}, { authenticator, authorizer });
    await seed(server);
  });
  afterAll(async () => {
    await server.close();
    await directory.remove();
  });

  test("answer alike about a hidden object and a missing one", async () => {
    for (const route of ROUTES) {
      const answer = async (id: string) => {
        const { status, error } = await send(server.port, route, analyst.text, id);
        return [status, error.replaceAll(id, "OBJECT")];
      };
      for (const [hidden, missing] of [
        ["teams$people", "teams$absent"],
        ["teams", "absent"],
      ] as const)
        assert.deepEqual(await answer(hidden), await answer(missing), titleOf(route));
      const { kind } = OPERATIONS[route.method.localName as AnyOperation];
      // A job that does not exist is on no table.
      if (kind !== "Table" || !route.template.source.includes("{identifier}")) continue;
      assert.equal((await answer("team$salaries"))[0], 403, titleOf(route));
    }
  });
});
