import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pino } from "pino";
import { describe, expect, onTestFinished, test } from "vitest";
import { sourcesOf } from "../../../test/support/command-line.ts";
import { temporaryDirectory } from "../../../test/support/directory.ts";
import { sendHttp } from "../../../test/support/http.ts";
import { issueKey } from "../../auth/api-keys/key-file.ts";
import { rolePolicies } from "../../auth/cedar/read-policies.ts";
import { readServeOptions } from "../../config/serve-options.ts";
import type { Role } from "../../namespace/call/principal.ts";
import { startGateway } from "../start-gateway.ts";
import { consoleIssuersOf, consoleSignInOf } from "./administration.ts";

const TEAM = `
  @id("dashboards") permit (principal == User::"api-key:dashboards", action == Action::"QueryTable", resource in Namespace::"team");
  @id("public") permit (principal, action == Action::"CountTableRows", resource is Table)
  when { resource.hasTag("class") && resource.getTag("class") == "public" };
`;

/** Starts a gateway with a key of each kind. */
async function start(...more: readonly string[]) {
  const { path, remove } = await temporaryDirectory();
  onTestFinished(remove);
  const [file, policies, audit] = ["keys.json", "policies", "audit.jsonl"].map((name) =>
    join(path, name),
  ) as [string, string, string];
  await Promise.all([mkdir(policies), mkdir(join(path, "root"))]);
  await writeFile(join(policies, "roles.cedar"), rolePolicies());
  await writeFile(join(policies, "team.cedar"), TEAM);
  const issue = (name: string, role: Role, scope: string[] = []) =>
    issueKey(file, { name, role, groups: [], scope });
  const keys = {
    owner: await issue("ann", "owner"),
    writer: await issue("etl", "writer"),
    scoped: await issue("team", "owner", ["team"]),
    dashboards: await issue("dashboards", "none"),
  };
  const flags = more.map((each) => each.replace("POLICIES", policies));
  const options = readServeOptions(
    sourcesOf([
      ...["--port", "0", "--drain-seconds", "0", "--root", join(path, "root"), "--audit-log", audit],
      ...["--auth", "api-key", "--api-keys-file", file, ...flags],
    ]),
  );
  const gateway = await startGateway(options, pino({ level: "silent" }));
  onTestFinished(async () => void (await gateway.close("cut off")));
  const send = async (address: string, body: object, key: string) => {
    const answer = await sendHttp(gateway.address.port, {
      path: address,
      headers: { "content-type": "application/json", "x-api-key": key },
      body: JSON.stringify(body),
    });
    return { status: answer.status, ...(JSON.parse(answer.bytes.toString()) as Record<string, unknown>) };
  };
  const ask = (method: string, body: object = {}, key = keys.owner.text) =>
    send(`/lance.gateway.v1.AccessService/${method}`, body, key);
  return { gateway, keys, ask, send, file, path, audit };
}

describe("keys, roles and policies over the port", () => {
  test("lists, creates and revokes keys, which count without a restart, and writes it into the audit log", async () => {
    const { gateway, keys, ask, send, file, audit } = await start();
    const listed = await ask("ListKeys");
    expect(listed).toMatchObject({ status: 200, keys: { length: 4 } });
    expect(JSON.stringify(listed)).not.toMatch(/hash|sha256|lgw_/);
    expect(listed).not.toHaveProperty("readOnlyReason");

    const made = await ask("CreateKey", {
      name: "nightly",
      role: "reader",
      scope: ["team"],
      lifetimeSeconds: "3600",
    });
    const { key, secret } = made as unknown as { key: Record<string, string>; secret: string };
    expect(key).toMatchObject({ name: "nightly", role: "reader", scope: ["team"] });
    expect(Date.parse(key["expires"] as string) - Date.parse(key["created"] as string)).toBe(3_600_000);
    expect(secret).toMatch(new RegExp(`^lgw_${key["id"]}_`));
    expect(await readFile(file, "utf8")).not.toContain(secret);
    await gateway.refresh();
    const list = () => send("/v1/namespace/team/table/list", {}, secret);
    expect((await list()).status).toBe(404);

    expect((await ask("RevokeKey", { id: key["id"] })).status).toBe(200);
    expect(await ask("RevokeKey", { id: key["id"] })).toMatchObject({
      status: 400,
      code: "invalid_argument",
    });
    await gateway.refresh();
    expect((await list()).status).toBe(401);

    const lines = (await readFile(audit, "utf8"))
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    const created = lines.find(({ operation }) => operation === "CreateKey");
    expect(created).toMatchObject({
      principal: "ann",
      credential: keys.owner.facts.id,
      action: "admin",
      outcome: "OK",
      key: { id: key["id"], name: "nightly", role: "reader", scope: ["team"], expires: expect.any(String) },
    });
    const revoked = lines.filter(({ operation }) => operation === "RevokeKey");
    expect(revoked).toMatchObject([{ key: { ...created.key } }, { outcome: "InvalidInput" }]);
    expect(revoked[1]).not.toHaveProperty("key");
    expect(JSON.stringify(lines)).not.toContain(secret);
  });

  test.each([["roles"], ["policies", "--policy-dir", "POLICIES"]])(
    "refuses everybody but owners of the whole gateway, by %s",
    async (_, ...flags) => {
      const { keys, ask } = await start(...flags);
      for (const method of ["ListKeys", "CreateKey", "RevokeKey", "ListRoles", "ListPolicies", "TryAccess"]) {
        const body = method === "CreateKey" ? { name: "x", role: "owner" } : {};
        for (const { text } of [keys.writer, keys.scoped, keys.dashboards])
          expect(await ask(method, body, text), method).toMatchObject({
            ...{ status: 403, code: "permission_denied" },
            message: `${method} (admin) on the root is not allowed`,
          });
        expect((await ask(method, body, "lgw_no")).status).toBe(401);
      }
    },
  );

  test("refuses wrong keys, and changes where the file cannot be written", async () => {
    const { ask, file, path } = await start();
    for (const wrong of [
      { name: " ", role: "reader" },
      { name: "a\nb", role: "reader" },
      { name: "a", role: "admin" },
      { name: "a", role: "reader", scope: [""] },
      { name: "a", role: "reader", lifetimeSeconds: "0" },
    ])
      expect(await ask("CreateKey", wrong), JSON.stringify(wrong)).toMatchObject({
        code: "invalid_argument",
      });
    await writeFile(`${file}.lock`, "");
    expect(await ask("CreateKey", { name: "a", role: "none" })).toMatchObject({ code: "aborted" });
    if (process.getuid?.() === 0) return;
    await chmod(path, 0o500);
    expect(await ask("CreateKey", { name: "a", role: "none" })).toMatchObject({ code: "unimplemented" });
    await chmod(path, 0o700);
  });

  test("leaves keys alone on a gateway that is for reading", async () => {
    const { ask, keys } = await start("--read-only");
    expect(await ask("ListKeys")).toMatchObject({ readOnlyReason: "the gateway is read-only" });
    expect(await ask("CreateKey", { name: "a", role: "none" })).toMatchObject({ code: "unimplemented" });
    const tried = async (operation: string) => {
      const { allowed = false, reason }: Record<string, unknown> = await ask("TryAccess", {
        key: keys.owner.facts.id,
        operation,
      });
      return [allowed, reason];
    };
    const readOnly = "the gateway is read-only";
    expect(await tried("ListKeys")).toEqual([true, "the role owner without a scope allows it"]);
    expect(await tried("CreateKey")).toEqual([false, readOnly]);
    expect(await tried("CreateNamespace")).toEqual([false, readOnly]);
  });

  test("tells what a caller may do, and why, by roles and scopes", async () => {
    const { keys, ask } = await start();
    const tried = async (caller: object, operation: string, object: string[] = ["team", "t"]) => {
      const answer: Record<string, unknown> = await ask("TryAccess", { ...caller, operation, object });
      const { allowed = false, reason } = answer;
      return [allowed, reason];
    };
    expect(await tried({ key: keys.writer.facts.id }, "InsertIntoTable")).toEqual([
      true,
      "the role writer allows write",
    ]);
    expect(await tried({ principal: "oidc:ann", role: "reader" }, "DropTable")).toEqual([
      false,
      "the role reader allows list, describe, read, and not manage",
    ]);
    const scoped = { key: keys.scoped.facts.id };
    expect(await tried(scoped, "QueryTable")).toEqual([true, "the role owner allows read"]);
    expect(await tried(scoped, "QueryTable", ["other"])).toEqual([
      false,
      "the key is restricted to team, and the object is not in it",
    ]);
    expect(await tried(scoped, "ListAllTables", [])).toEqual([
      false,
      "the key is restricted to team, and ListAllTables may reach other objects",
    ]);
    for (const wrong of [
      { operation: "EraseAll" },
      { operation: "QueryTable", principal: "ann" },
      { key: "no" },
    ])
      expect(await ask("TryAccess", { principal: "oidc:a", ...wrong }), JSON.stringify(wrong)).toMatchObject({
        code: "invalid_argument",
      });
    expect(await tried({ key: keys.owner.facts.id }, "CreateKey", [])).toEqual([
      true,
      "the role owner without a scope allows it",
    ]);
    const OWNERS = "only callers with the role owner and without a scope may do it";
    expect(await tried(scoped, "CreateKey", [])).toEqual([false, OWNERS]);
    expect(await tried({ key: keys.writer.facts.id }, "TryAccess", [])).toEqual([false, OWNERS]);
    expect(await tried({ key: keys.owner.facts.id }, "DescribeDriverTask", [])).toEqual([
      false,
      "it checks a key of its own, and not who calls",
    ]);
    for (const wrong of [{ operation: "CreateKey", object: ["team"] }])
      expect(await ask("TryAccess", { principal: "oidc:a", role: "owner", ...wrong })).toMatchObject({
        code: "invalid_argument",
      });
    expect(await ask("ListPolicies")).toEqual({ status: 200, decidedBy: "roles" });
    expect(await ask("ListRoles")).toMatchObject({ roles: { length: 4 } });
  });

  test("tells it by policies and properties", async () => {
    const { keys, ask, send } = await start("--policy-dir", "POLICIES");
    await send("/v1/namespace/team/create", { properties: {} }, keys.owner.text);
    await send("/v1/table/team$t/declare", { properties: { class: "public" } }, keys.owner.text);
    const tried = (operation: string) =>
      ask("TryAccess", { key: keys.dashboards.facts.id, operation, object: ["team", "t"] });
    expect(await tried("QueryTable")).toMatchObject({
      allowed: true,
      reason: "permitted by dashboards",
      policies: ["dashboards"],
    });
    expect(await tried("CountTableRows")).toMatchObject({ allowed: true, policies: ["public"] });
    expect(await tried("DropTable")).toEqual({ status: 200, reason: "no policy permits it" });
    const owner = (key: string) => ask("TryAccess", { key, operation: "RevokeKey" });
    expect(await owner(keys.owner.facts.id)).toMatchObject({ allowed: true, policies: ["role-owner"] });
    expect(await owner(keys.scoped.facts.id)).toMatchObject({
      reason: "only callers with the role owner and without a scope may do it",
    });
    const { policies } = (await ask("ListPolicies")) as unknown as {
      policies: { name: string; text: string }[];
    };
    expect(policies.find(({ name }) => name === "public")?.text).toContain('getTag("class")');
  });
});

const [A, B] = ["https://a.example", "https://b.example"] as const;

test("the console signs in at the issuers that it is a client of", () => {
  expect(consoleIssuersOf({ oidcIssuers: [{ issuer: A }, { issuer: B, consoleClientId: "b" }] })).toEqual([
    { issuer: B, clientId: "b", scope: "openid" },
  ]);
});

test("an issuer's own settings override those of all issuers", () => {
  const own = { issuer: B, consoleClientId: "b", consoleScope: "openid lance" };
  const all = { consoleOidcClientId: "console", consoleOidcScope: "openid profile" };
  expect(consoleIssuersOf({ oidcIssuers: [{ issuer: A }, own], ...all })).toEqual([
    { issuer: A, clientId: "console", scope: "openid profile" },
    { issuer: B, clientId: "b", scope: "openid lance" },
  ]);
});

test("the console offers the kinds of credentials that the gateway checks", () => {
  expect(consoleSignInOf({ auth: ["api-key"] }, [undefined])).toEqual({
    methods: ["api-key"],
    hasDatabases: false,
    issuers: [],
  });
  const both = consoleSignInOf({ auth: ["oidc", "mtls", "api-key"] }, ["a", "b", undefined]);
  expect(both).toMatchObject({ methods: ["api-key", "token"], hasDatabases: true });
  expect(consoleSignInOf({ auth: ["mtls"] }, ["a"])).toMatchObject({ methods: [], hasDatabases: false });
});
