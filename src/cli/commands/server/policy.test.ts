import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pino } from "pino";
import { describe, it, onTestFinished, vi } from "vitest";
import { temporaryDirectory } from "../../../../test/support/directory.ts";
import { UsageError } from "../../../config/option-spec.ts";
import { readServeOptions } from "../../../config/serve-options.ts";
import { openAuthorizer } from "../../../gateway/access/open-access.ts";
import { runProgram } from "../../program.ts";

/** Runs `lance-gateway policy` and returns its exit code and what it printed. */
async function policy(...args: readonly string[]) {
  let stdout = "";
  const spy = vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    stdout += String(text);
    return true;
  });
  try {
    return { code: await runProgram(["policy", ...args], {}), stdout };
  } finally {
    spy.mockRestore();
  }
}

async function folderOf(files: Readonly<Record<string, string>>): Promise<string> {
  const { path, remove } = await temporaryDirectory();
  onTestFinished(remove);
  for (const [name, text] of Object.entries(files)) await writeFile(join(path, name), text);
  return path;
}

const FORBID = '@id("no-salaries") forbid (principal, action, resource == Table::"team$salaries");';

describe("lance-gateway policy", () => {
  it("prints policies of the roles that it accepts, and explains decisions by them", async () => {
    const { stdout: roles } = await policy("print-roles");
    const folder = await folderOf({ "roles.cedar": roles, "team.cedar": FORBID });
    assert.deepEqual(await policy("check", folder), { code: 0, stdout: "4 policies\n" });
    const explain = (role: string, action: string, object: string) =>
      policy(
        "explain",
        folder,
        ...["--principal", "api-key:x", "--role", role, "--action", action, "--object", object],
      );
    assert.deepEqual(await explain("reader", "QueryTable", "team$t"), {
      code: 0,
      stdout: "allow: permitted by role-reader\n",
    });
    assert.deepEqual(await explain("reader", "DropTable", "team$t"), {
      code: 1,
      stdout: "deny: no policy permits it\n",
    });
    assert.deepEqual(await explain("owner", "QueryTable", "team$salaries"), {
      code: 1,
      stdout: "deny: forbidden by no-salaries\n",
    });
  });

  it("tells a wrong option from a decision that denies", async () => {
    const folder = await folderOf({ "team.cedar": FORBID });
    assert.equal((await policy("check", folder)).stdout, "1 policy\n");
    const explain = (principal: string, action: string, object: string) =>
      policy("explain", folder, "--principal", principal, "--action", action, "--object", object);
    for (const [principal, action, object, message] of [
      ["x", "QueryTable", "t", /^--principal must be one of/],
      ["api-key:x", "QueryTabel", "t", /^--action must be an operation/],
      ["api-key:x", "QueryTable", "a$..", /^--object: /],
    ] as const)
      await assert.rejects(
        explain(principal, action, object),
        (e) => e instanceof UsageError && message.test(e.message),
      );
  });

  it("takes groups and claims, and answers as JSON", async () => {
    const folder = await folderOf({
      "a.cedar": `@id("search") permit (principal in Group::"eng", action, resource)
        when { principal.hasTag("department") && principal.getTag("department").contains("search") };`,
    });
    const caller = ["--principal", "oidc:ann", "--group", "eng", "--action", "ListTables", "--json"];
    const claims = ["--claim", "department=ads", "--claim", "department=search"];
    const { code, stdout } = await policy("explain", "--dir", folder, ...caller, ...claims);
    assert.deepEqual([code, JSON.parse(stdout)], [0, { allowed: true, by: ["search"], errors: [] }]);
    assert.equal((await policy("explain", "--dir", folder, ...caller)).code, 1);
  });

  it("takes properties of the object, in explanations and in cases", async () => {
    const folder = await folderOf({
      "a.cedar": `@id("public") permit (principal, action, resource)
        when { resource.hasTag("class") && resource.getTag("class") == "public" };`,
      "a.test.yaml": `cases:
  - { principal: "oidc:ann", action: QueryTable, object: t, properties: { class: public }, expect: allow }
  - { principal: "oidc:ann", action: QueryTable, object: t, properties: { class: secret }, expect: deny }
  - { principal: "oidc:ann", action: QueryTable, object: t, expect: deny }
`,
    });
    assert.deepEqual(await policy("test", folder), { code: 0, stdout: "3 of 3 cases pass\n" });
    const explain = ["explain", folder, "--principal", "oidc:ann", "--action", "QueryTable", "--object", "t"];
    assert.equal((await policy(...explain, "--property", "class=public")).code, 0);
    assert.equal((await policy(...explain, "--property", "class=secret")).code, 1);
  });

  it("runs the cases beside the policies, and fails with those that get another answer", async () => {
    const test = `cases:
  - { name: salaries, principal: "oidc:ann", role: owner, action: QueryTable, object: team$salaries, expect: deny }
  - { name: people, principal: "oidc:ann", action: QueryTable, object: team$people, expect: allow }
`;
    const folder = await folderOf({ "team.cedar": FORBID, "team.test.yaml": test });
    assert.deepEqual(await policy("test", folder), {
      code: 1,
      stdout: "FAIL people: expected allow; no policy permits it\n1 of 2 cases pass\n",
    });
    const { code, stdout } = await policy("test", folder, "--json");
    const failures = [{ name: "people", message: "expected allow; no policy permits it" }];
    assert.deepEqual([code, JSON.parse(stdout)], [1, { cases: 2, passed: 1, failures }]);
    assert.deepEqual(JSON.parse((await policy("check", folder, "--json")).stdout), { policies: 1 });
  });

  for (const [fault, line, message] of [
    [
      "an unknown key",
      '{ principal: "oidc:a", action: QueryTable, expect: deny, subject: x }',
      /cases\[0\]\.subject is not known/,
    ],
    [
      "an unknown operation",
      '{ principal: "oidc:a", action: Query, expect: deny }',
      /cases\[0\]: action must be an operation/,
    ],
    [
      "an unknown proof",
      '{ principal: "ldap:a", action: QueryTable, expect: deny }',
      /cases\[0\]: principal must be/,
    ],
    [
      "no expectation",
      '{ principal: "oidc:a", action: QueryTable }',
      /cases\[0\]\.expect must be allow or deny/,
    ],
  ] as const) {
    it(`refuses a case with ${fault}`, async () => {
      const folder = await folderOf({ "a.cedar": FORBID, "a.test.yaml": `cases: [${line}]` });
      await assert.rejects(policy("test", folder), message);
    });
  }

  it("refuses wrong policies, as the gateway does, which also needs to know who calls", async () => {
    const directory = await folderOf({ "a.cedar": "permit (principal);" });
    await assert.rejects(policy("check", directory), /^Error: a\.cedar:1:/);
    const log = pino({ level: "silent" });
    const options = { ...readServeOptions([]), policyDir: directory };
    await assert.rejects(openAuthorizer({ ...options, auth: ["api-key"] }, log), /--policy-dir: a\.cedar:1/);
    await assert.rejects(openAuthorizer(options, log), /requires --auth/);
    await assert.rejects(policy("drop"), /policy does one of check, test, explain, print-roles/);
  });
});
