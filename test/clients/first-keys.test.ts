import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { pythonInterpreter } from "../../scripts/python-environment.ts";
import { freePort } from "../support/free-port.ts";
import { NODE } from "../support/node-command.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "..", "..");
const page = readFileSync(join(root, "docs", "first-keys.md"), "utf8");

/** Returns a folder with the command `lance-gateway`, as an installation gives it. */
function commandFolder(folder: string): string {
  const command = [...NODE, join(root, "src", "cli", "main.ts")].map((part) => `'${part}'`).join(" ");
  writeFileSync(join(folder, "lance-gateway"), `#!/bin/sh\nexec ${command} "$@"\n`, { mode: 0o700 });
  return folder;
}

test("the page about first keys leads to a gateway with TLS, a writer and a reader", async ({
  onTestFinished,
}) => {
  const cwd = mkdtempSync(join(tmpdir(), "lance-gateway-keys-"));
  onTestFinished(() => rmSync(cwd, { recursive: true, force: true }));
  const port = await freePort("0.0.0.0");
  const env = {
    ...process.env,
    PATH: `${commandFolder(cwd)}:${process.env["PATH"]}`,
    LANCE_GATEWAY_PORT: String(port),
  };
  const [certificate, keys, serve, python, curl, revoke] = [
    ...page.matchAll(/^```(?:sh|py)\n(.*?)^```$/gms),
  ].map(([, code = ""]) => code.replaceAll("localhost:2333", `localhost:${port}`)) as [
    ...[string, string, string, string, string, string],
  ];
  const shell = async (code: string) => (await run("bash", ["-eu", "-c", code], { cwd, env })).stdout;

  await shell(certificate);
  await shell(keys);
  const gateway = spawn("bash", ["-c", `exec ${serve}`], { cwd, env });
  const ended = Promise.all([text(gateway.stdout), text(gateway.stderr), once(gateway, "exit")]);
  onTestFinished(async () => {
    gateway.kill();
    await ended;
  });
  await expect.poll(() => shell(curl).catch(() => "")).toMatch(/"code":16.*"tables":\[\]/s);

  const { stdout } = await run(pythonInterpreter(), ["-c", python], { cwd, env });
  assert.match(stdout, /^1\n.*403 Forbidden.*DropTable \(manage\) on people/s);
  assert.match(await shell(curl), /"code":16.*"tables":\["people"\]/s);
  await shell(revoke);
  await expect.poll(() => shell(curl)).toMatch(/"code":16.*"code":16/s);
});
