import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, test } from "vitest";
import { temporaryDirectory } from "../support/directory.ts";
import { createGrpcClient } from "../support/grpc-client.ts";
import { type Program, startProgram } from "../support/program.ts";
import { createRestClient } from "../support/rest-client.ts";

describe("the program before other programs", () => {
  let directory: { path: string; remove(): Promise<void> };
  beforeAll(async () => {
    directory = await temporaryDirectory();
  });
  afterAll(async () => {
    for (const { child } of started) child.kill("SIGKILL");
    await directory.remove();
  });

  const started: Program[] = [];
  function start(...args: string[]): Program {
    const program = startProgram("serve", ...args);
    started.push(program);
    return program;
  }

  test("serves a directory, an upstream by either protocol, and both of them as databases", async () => {
    const root = join(directory.path, "root");
    const below = await start("--root", root, "--port", "0").listening();
    const upstream = `127.0.0.1:${below}`;
    const file = join(directory.path, "gateway.yaml");
    await writeFile(
      file,
      `
port: 0
databases:
  by-rest:
    backend: rest
    # Nobody listens at the second one.
    uri: ["http://${upstream}", "http://127.0.0.1:1"]
    upstream-retries: 1
    upstream-circuit-failures: 1
  by-grpc: { backend: grpc, address: "${upstream}" }
routes:
  - by: namespace
`,
    );
    const [byGrpc, byRest, byName] = await Promise.all(
      [
        ["--backend", "grpc", "--address", upstream, "--port", "0"],
        ["--backend", "rest", "--uri", `http://${upstream}`, "--port", "0"],
        ["--config", file],
      ].map((args) => start(...args).listening()),
    );
    const [overGrpc, overRest, overNames] = [byGrpc, byRest, byName].map((port) =>
      createGrpcClient(port as number),
    );
    const direct = createRestClient(below);
    await overGrpc?.client.createNamespace({ id: ["a"] });
    await overRest?.client.createNamespace({ id: ["a", "b"] });
    await overNames?.client.createNamespace({ id: ["by-rest", "a", "c"] });
    await overNames?.client.createNamespace({ id: ["by-grpc", "a", "d"] });
    assert.deepEqual((await direct.client.listNamespaces({ id: ["a"] })).namespaces, ["b", "c", "d"]);
    for (const client of [overGrpc, overRest, overNames, direct]) client?.close();
  });

  const mistakes: Readonly<Record<string, readonly [readonly string[], RegExp]>> = {
    "an upstream without a place": [["--backend", "grpc"], /--address is missing/],
    "a certificate that is not there": [
      ["--backend", "grpc", "--address", "a:1", "--upstream-ca", "/no/such/file"],
      /\/no\/such\/file cannot be read: ENOENT/,
    ],
    "a certificate without its key": [
      ["--backend", "grpc", "--address", "a:1", "--upstream-cert", "x"],
      /--upstream-cert and --upstream-key go together/,
    ],
    "a service identity without a credential": [
      ["--backend", "rest", "--uri", "http://a", "--upstream-identity", "service"],
      /--upstream-api-key or --upstream-token is missing/,
    ],
    "a configuration file that is not there": [["--config", "/no/such/file"], /cannot be read: ENOENT/],
  };
  for (const [what, [args, pattern]] of Object.entries(mistakes)) {
    test(`ends with one line and code 2: ${what}`, async () => {
      const { code, stderr } = await start(...args).ended;
      assert.equal(code, 2, stderr);
      assert.match(stderr, /^lance-gateway: [^\n]+\n$/);
      assert.match(stderr, pattern);
    });
  }
});
