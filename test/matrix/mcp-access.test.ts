import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { drawKey, type KeyRecord } from "../../src/auth/api-keys/key-file.ts";
import { proveByKeys } from "../../src/auth/api-keys/key-ring.ts";
import { createAuthenticator } from "../../src/auth/authenticator.ts";
import { openPolicyFolder } from "../../src/auth/cedar/policy-folder.ts";
import { rolePolicies } from "../../src/auth/cedar/read-policies.ts";
import { proveByTokens } from "../../src/auth/tokens/authenticate-by-token.ts";
import { CountTableRowsResponseSchema } from "../../src/gen/lance/namespace/v1/query_pb.ts";
import type { Call } from "../../src/namespace/call/call.ts";
import type { Role } from "../../src/namespace/call/principal.ts";
import { claims, shownKeys, sign, signingKey, trustedIssuer, verifierWith } from "../fixtures/auth/tokens.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { connectMcp, type McpClient, ToolFailure } from "../support/mcp-client.ts";
import { type DirectoryServer, fakeBackend, startDirectoryServer, startServer } from "../support/server.ts";

const POLICIES = `
@id("no-salaries")
forbid (principal, action, resource == Table::"team$salaries") unless { principal in Role::"owner" };
`;
const ISSUER = "https://issuer.example.com";

const INITIALIZE = {
  ...{ jsonrpc: "2.0", id: 1, method: "initialize" },
  params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "test", version: "1" } },
};
const callOf = (name: string, input: object) => ({
  ...{ jsonrpc: "2.0", id: 2, method: "tools/call" },
  params: { name, arguments: input },
});

function post(port: number, body: unknown, headers: Readonly<Record<string, string>> = {}, path = "/mcp") {
  return fetch(`http://127.0.0.1:${port}${path}`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...headers,
    },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
}

async function failureOf(call: Promise<unknown>): Promise<string> {
  const error: unknown = await call.then(
    (value) => assert.fail(`the call succeeds: ${value}`),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof ToolFailure, String(error));
  return error.message;
}

describe("an agent at a gateway that asks who calls", () => {
  const keys = { owner: drawKey(), reader: drawKey() };
  const calls: {
    operation: string;
    protocol: string;
    caller: string | undefined;
    code: string | undefined;
  }[] = [];
  let server: DirectoryServer;
  let token: string;
  const agents: McpClient[] = [];

  async function as(headers: Readonly<Record<string, string>>): Promise<McpClient> {
    const agent = await connectMcp(server.port, headers);
    agents.push(agent);
    return agent;
  }
  const withKey = (role: keyof typeof keys) => as({ "x-api-key": keys[role].text });

  beforeAll(async () => {
    const { path, remove } = await temporaryDirectory();
    const policyDir = join(path, "policies");
    await mkdir(policyDir);
    await writeFile(join(policyDir, "all.cedar"), rolePolicies() + POLICIES);
    const ring = {
      find(text: string): KeyRecord | "unknown" {
        const role = (["owner", "reader"] as const).find((each) => keys[each].text === text);
        if (role === undefined) return "unknown";
        const facts = { hash: "", created: "2026-01-01T00:00:00.000Z" };
        return { ...facts, id: keys[role].id, name: role, role: role satisfies Role };
      },
      close() {},
    };
    const key = await signingKey("k");
    const shown = shownKeys();
    shown.keys = [key];
    const grants = [{ role: "reader", to: { kind: "scope", value: "lance.read" } }] as const;
    const verifiers = [verifierWith(shown, trustedIssuer({ grants }))];
    token = await sign(key, claims({ scope: "lance.read" }));
    const ways = [proveByKeys(ring), proveByTokens({ verifiers })];
    const authenticator = createAuthenticator(ways, { failed: () => 0 });
    const authorizer = await openPolicyFolder({ directory: policyDir, log: pino({ level: "silent" }) });
    const note = (call: Call) =>
      void calls.push({
        ...{ operation: call.method.name, protocol: call.protocol, caller: call.principal?.name },
        code: call.outcome,
      });
    server = await startDirectoryServer(
      { mcpWrites: true, oidcIssuers: [{ issuer: ISSUER }] as never },
      {
        authenticator,
        authorizer,
        plugins: [
          {
            interceptors: [
              async (call, request, next) => {
                note(call);
                return next(call, request);
              },
            ],
          },
        ],
      },
    );
    const owner = await withKey("owner");
    await owner.call("create_namespace", { namespace: "team" });
    for (const table of ["team/people", "team/salaries"])
      await owner.call("create_table", { table, rows: [{ id: 1 }] });
    return remove;
  });
  afterAll(async () => {
    for (const agent of agents) await agent[Symbol.asyncDispose]();
    await server.close();
  });

  test("is refused without a credential, and learns where to get one", async () => {
    for (const body of [INITIALIZE, callOf("list_tables", {})]) {
      const response = await post(server.port, body);
      assert.equal(response.status, 401);
      const challenge = response.headers.get("www-authenticate") ?? "";
      const [, address] = /Bearer resource_metadata="([^"]+)"/.exec(challenge) ?? [];
      const metadata = await (await fetch(address ?? "")).json();
      expect(metadata).toMatchObject({
        resource: `http://127.0.0.1:${server.port}/mcp`,
        authorization_servers: [ISSUER],
      });
    }
  });

  test("is refused with a wrong key or token before its request is read", async () => {
    const wrong: [Record<string, string>, RegExp][] = [
      [{ "x-api-key": "wrong" }, /^ApiKey/],
      [{ authorization: "Bearer a.b.c" }, /Bearer resource_metadata="[^"]+", realm=.*invalid_token/],
    ];
    for (const [headers, challenge] of wrong) {
      const response = await post(server.port, "{", headers);
      assert.equal(response.status, 401, JSON.stringify(headers));
      assert.match(response.headers.get("www-authenticate") ?? "", challenge);
    }
  });

  test("calls with a key or a token, as the caller that it proves", async () => {
    calls.length = 0;
    const reader = await withKey("reader");
    expect(await reader.json("list_namespaces")).toEqual({ namespaces: ["team"] });
    const bearer = await as({ authorization: `Bearer ${token}` });
    expect(await bearer.json("count_rows", { table: "team/people" })).toEqual({ row_count: 1 });
    expect(calls).toMatchObject([
      { operation: "ListNamespaces", protocol: "mcp" },
      { operation: "CountTableRows", protocol: "mcp" },
    ]);
    assert.match(String(calls[0]?.caller), /reader/);
  });

  test("may do what its caller's policies permit, and sees no other tables", async () => {
    const reader = await withKey("reader");
    expect(await reader.json("list_tables", { namespace: "team" })).toEqual({ tables: ["people"] });
    const hidden = await failureOf(reader.call("query_table", { table: "team/salaries" }));
    assert.match(hidden, /^PermissionDenied: .*Tell the user/s);
    const drop = await failureOf(reader.call("drop_table", { table: "team/people" }));
    assert.match(drop, /^PermissionDenied: .*Tell the user/s);
    const owner = await withKey("owner");
    expect(await owner.json("count_rows", { table: "team/salaries" })).toEqual({ row_count: 1 });
  });
});

describe("a gateway with MCP", () => {
  let server: DirectoryServer;
  beforeAll(async () => {
    server = await startDirectoryServer({ maxMessageBytes: 100_000 });
  });
  afterAll(() => server.close());

  test("refuses pages of other origins, foreign hosts, and forms", async () => {
    const { port } = server;
    const origin = { origin: "https://evil.example.com" };
    assert.equal((await post(port, INITIALIZE, origin)).status, 403);
    assert.equal((await post(port, INITIALIZE, { "sec-fetch-site": "cross-site" })).status, 403);
    assert.equal((await post(port, INITIALIZE, { "content-type": "text/plain" })).status, 415);
    const rebound = request({ port, path: "/mcp", method: "POST", headers: { host: "evil.example.com" } });
    rebound.end("{}");
    const [response] = await once(rebound, "response");
    response.resume();
    assert.equal(response.statusCode, 403);
  });

  test("takes nothing but POST", async () => {
    for (const method of ["GET", "DELETE", "PUT"]) {
      const { status, headers } = await fetch(`http://127.0.0.1:${server.port}/mcp`, { method });
      assert.deepEqual([status, headers.get("allow")], [405, "POST"], method);
    }
  });

  test("says where it has no issuers that it has none", async () => {
    const { status } = await fetch(`http://127.0.0.1:${server.port}/.well-known/oauth-protected-resource`);
    assert.equal(status, 404);
  });

  test("answers requests that are not MCP with an error, and goes on", async () => {
    const { port } = server;
    const bodies: [unknown, number][] = [
      ["", 400],
      ["{", 400],
      ["[]", 400],
      ["7", 400],
      [{ jsonrpc: "2.0", id: 1 }, 400],
      [Array.from({ length: 17 }, () => callOf("list_tables", {})), 400],
      ["[".repeat(60_000), 400],
      [`${"[".repeat(20_000)}${"]".repeat(20_000)}`, 400],
      ["x".repeat(200_000), 413],
    ];
    for (const [body, status] of bodies) {
      const response = await post(port, body);
      const text = await response.text();
      assert.equal(response.status, status, `${JSON.stringify(body).slice(0, 40)}: ${text}`);
      assert.ok(JSON.parse(text));
    }
    const deep = callOf("list_tables", JSON.parse(`{"x":${"[".repeat(5_000)}${"]".repeat(5_000)}}`));
    assert.ok([200, 400].includes((await post(port, deep)).status));
    assert.equal((await post(port, INITIALIZE)).status, 200);
  });

  test("keeps nothing between requests: a call needs no handshake", async () => {
    const response = await post(server.port, callOf("list_tables", {}));
    assert.equal(response.status, 200);
    assert.equal(response.headers.get("mcp-session-id"), null);
    assert.match(await response.text(), /tables/);
  });
});

test("an agent meets the limits of its caller, and is told when to come again", async () => {
  const rateLimits = [{ scope: "address", perSecond: 0.001, burst: 1 }] as const;
  const server = await startDirectoryServer({ rateLimits });
  onTestFinished(() => server.close());
  await using agent = await connectMcp(server.port);
  await agent.call("list_tables");
  assert.match(await failureOf(agent.call("list_tables")), /^Throttling: .*Retry after \d+ s/s);
});

test("a cancelled call ends at the backend, as does that of a client that goes", async () => {
  let ended = Promise.withResolvers<unknown>();
  let begun = Promise.withResolvers<void>();
  const backend = fakeBackend({
    async countTableRows(_request, { signal }) {
      begun.resolve();
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      ended.resolve(signal.reason);
      return create(CountTableRowsResponseSchema);
    },
  });
  const server = await startServer(backend);
  onTestFinished(() => server.close());
  for (const era of ["modern", "legacy"] as const) {
    begun = Promise.withResolvers();
    ended = Promise.withResolvers();
    await using agent = await connectMcp(server.port, {}, { era });
    const controller = new AbortController();
    const params = { name: "count_rows", arguments: { table: "t" } };
    const call = agent.client.callTool(params, { signal: controller.signal });
    const failed = assert.rejects(call);
    await begun.promise;
    if (era === "modern") controller.abort();
    else await agent.client.close();
    await failed;
    await ended.promise;
  }
});

test("a call ends at the time that its request gives it", async () => {
  const server = await startServer(
    fakeBackend({
      countTableRows: (_request, { signal }) =>
        new Promise((_, no) => signal.addEventListener("abort", () => no(signal.reason))),
    }),
  );
  onTestFinished(() => server.close());
  const response = await post(server.port, callOf("count_rows", { table: "t" }), {
    "x-request-timeout-ms": "200",
  });
  assert.equal(response.status, 504);
});

test("an unknown failure is logged, and the agent sees none of it", async () => {
  const lines: string[] = [];
  const log = pino({ level: "error" }, { write: (line: string) => void lines.push(line) });
  const server = await startServer(
    fakeBackend({ countTableRows: () => Promise.reject(new Error("secret place")) }),
    {},
    { log },
  );
  onTestFinished(() => server.close());
  await using agent = await connectMcp(server.port);
  const failure = await failureOf(agent.call("count_rows", { table: "t" }));
  assert.match(failure, /^Internal: /);
  assert.doesNotMatch(failure, /secret/);
  assert.match(lines.join(""), /secret place/);
});
