import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, it } from "vitest";
import { type GatewayProcess, startGateway } from "./support/gateway.ts";
import { grpcurlFolder } from "./support/grpcurl.ts";
import { runPythonSource } from "./support/python.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "..", "..");
const readme = readFileSync(join(root, "README.md"), "utf8");

describe("the README's first steps", () => {
  let gateway: GatewayProcess;
  beforeAll(async () => {
    gateway = await startGateway();
  });
  afterAll(() => gateway.close());

  /** The code of the section with the given head, aimed at the server of this test. */
  function snippet(head: string): string {
    const code = new RegExp(`### ${head}\\n+\`\`\`\\w+\\n([^]*?)\`\`\``).exec(readme)?.[1];
    assert.ok(code, `the README has a section ${head} with code`);
    assert.match(code, /localhost:2333/);
    return code.replaceAll("localhost:2333", gateway.address);
  }

  const shell = (code: string, path = process.env["PATH"]) =>
    run("bash", ["-eu", "-c", code], { cwd: root, env: { ...process.env, PATH: path } });

  it("curl", async () => {
    const { stdout } = await shell(snippet("curl"));
    assert.match(stdout, /"owner":"me"/);
    assert.match(stdout, /"namespaces":\["demo"\]/);
    assert.match(stdout, /"code":4/);
  });

  it("Python", async () => {
    await runPythonSource(snippet("Python"));
  });

  it("grpcurl", async () => {
    const { stdout } = await shell(snippet("grpcurl"), `${await grpcurlFolder()}:${process.env["PATH"]}`);
    assert.match(stdout, /LanceNamespaceService\.DescribeTable/);
    assert.match(stdout, /"owner": "me"/);
  });

  it("Node", async () => {
    const file = join(root, ".cache", "readme.mjs");
    writeFileSync(file, snippet("Node"));
    try {
      const { stdout } = await run(process.execPath, [file], { cwd: root });
      assert.match(stdout, /demo/);
    } finally {
      rmSync(file);
    }
  });
});
