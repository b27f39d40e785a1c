import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { createOpaAuthorizer } from "../../src/auth/opa/opa.ts";
import { createOpaServer } from "../../src/auth/opa/server.ts";
import { LanceDbService } from "../../src/gen/lance/gateway/v1/lancedb_pb.ts";
import { LanceNamespaceService } from "../../src/gen/lance/namespace/v1/service_pb.ts";
import type { Access } from "../../src/namespace/authorizer.ts";
import { allows, type Principal, ROLE_NAMES } from "../../src/namespace/call/principal.ts";
import { actionOf } from "../../src/namespace/operations/method-facts.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { freePort } from "../support/free-port.ts";
import { startProgram } from "../support/program.ts";
import { ROOT, runTool } from "./support/tools.ts";

const VERSION = "v1.22.2";
const bin = join(ROOT, ".cache", "bin", `opa-${VERSION}`);

/** Builds the server, once for each version. The tag leaves out registries of containers. */
async function installOpa(): Promise<string> {
  const program = join(bin, "opa");
  if (existsSync(program)) return program;
  const module = `github.com/open-policy-agent/opa@${VERSION}`;
  await runTool("go", ["install", "-tags", "opa_no_oci", module], { env: { GOBIN: bin, CGO_ENABLED: "0" } });
  return program;
}

/** Returns the policy of the page. */
function policyOfPage(): string {
  const page = readFileSync(join(ROOT, "docs/security.md"), "utf8");
  return /^```rego\n(.*?)^```$/ms.exec(page)?.[1] ?? "";
}

const METHODS = [...LanceNamespaceService.methods, ...LanceDbService.methods];

function callerOf(role: Principal["role"], name = "ann"): Principal {
  return {
    by: "api-key",
    name,
    credentialId: "c",
    role,
    groups: [],
    claims: { nested: { list: [1, "a", null] } },
  };
}

describe("Open Policy Agent with the policy of the page", () => {
  let opa: ChildProcess;
  let origin: string;
  let folder: Awaited<ReturnType<typeof temporaryDirectory>>;

  beforeAll(async () => {
    const program = await installOpa();
    folder = await temporaryDirectory();
    const policy = join(folder.path, "lance.rego");
    await writeFile(policy, policyOfPage());
    origin = `http://127.0.0.1:${await freePort()}`;
    opa = spawn(program, ["run", "--server", "--addr", new URL(origin).host, policy], { stdio: "ignore" });
    await vi.waitFor(async () => assert.ok((await fetch(`${origin}/health`)).ok), { timeout: 60_000 });
  });
  afterAll(async () => {
    opa.kill();
    await once(opa, "exit");
    await folder.remove();
  });

  test("allows what the roles of the gateway allow, for every operation", async () => {
    const server = createOpaServer({ url: `${origin}/v1/data/lance/gateway/allowed`, timeoutMs: 60_000 });
    const authorizer = createOpaAuthorizer({ server, maxAgeMs: 0, log: pino({ level: "silent" }) });
    const object = { kind: "Table", database: undefined, id: ["n", "t"] } as const;
    for (const role of ROLE_NAMES) {
      const accesses = METHODS.map(
        (method): Access => ({ operation: method.name, action: actionOf(method), object }),
      );
      const decisions = await authorizer.allowsEach?.(callerOf(role), accesses);
      assert.deepEqual(
        decisions,
        accesses.map(({ action }) => allows({ role }, action)),
        role,
      );
    }
    const dashboards = callerOf("none", "dashboards");
    const query = (...id: string[]): Access => ({
      ...{ operation: "QueryTable", action: "read", object: { kind: "Table", database: undefined, id } },
    });
    const asked = [
      query("team", "a"),
      query("team", "in", "a"),
      query("team", "salaries"),
      query("teams", "a"),
    ];
    assert.deepEqual(await authorizer.allowsEach?.(dashboards, asked), [true, true, false, false]);
    authorizer.close();
  });

  test("decides for the program, whose calls fail with 503 while the server is away", async (context) => {
    const keys = join(folder.path, "keys.json");
    const gateway = ["--root", join(folder.path, "root"), "--auth", "api-key", "--api-keys-file", keys];
    const key = async (name: string, role: string) => {
      const { stdout } = await startProgram("keys", "create", "--file", keys, "--name", name, "--role", role)
        .ended;
      return stdout.trim();
    };
    const [root, dashboards] = [await key("root", "owner"), await key("dashboards", "none")];
    const program = startProgram("serve", "--port", "0", ...gateway, "--opa-url", origin);
    context.onTestFinished(async () => {
      program.child.kill();
      await program.ended;
    });
    const port = await program.listening();
    const call = async (apiKey: string, path: string) => {
      const headers = { "content-type": "application/json", "x-api-key": apiKey };
      const answer = await fetch(`http://127.0.0.1:${port}/v1${path}`, {
        method: "POST",
        headers,
        body: "{}",
      });
      return { status: answer.status, body: await answer.text() };
    };
    assert.equal((await call(root, "/namespace/team/create")).status, 200);
    for (const name of ["people", "salaries"])
      assert.equal((await call(root, `/table/team$${name}/declare`)).status, 200);
    assert.equal((await call(dashboards, "/table/team$people/describe")).status, 200);
    assert.equal((await call(dashboards, "/table/team$salaries/describe")).status, 403);
    assert.equal((await call(dashboards, "/table/team$people/drop")).status, 403);
    const listing = { method: "GET", headers: { "x-api-key": dashboards } };
    const listed = await fetch(`http://127.0.0.1:${port}/v1/namespace/team/table/list`, listing);
    assert.deepEqual(((await listed.json()) as { tables: string[] }).tables, ["people"]);
    opa.kill("SIGSTOP");
    try {
      const { status, body } = await call(dashboards, "/table/team$other/describe");
      assert.equal(status, 503, body);
    } finally {
      opa.kill("SIGCONT");
    }
    await expect.poll(async () => (await call(dashboards, "/table/team$people/describe")).status).toBe(200);
  });
});
