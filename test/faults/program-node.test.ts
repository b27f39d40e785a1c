import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { test } from "vitest";
import { OLDEST_NODE } from "../../bin/node-version.js";
import { temporaryDirectory } from "../support/directory.ts";

const PROJECT = join(import.meta.dirname, "../..");

/** Copies the program without the code that it starts. */
async function copyProgram(onTestFinished: (remove: () => Promise<void>) => void): Promise<string> {
  const { path, remove } = await temporaryDirectory();
  onTestFinished(remove);
  for (const name of ["bin", "package.json"]) {
    await cp(join(PROJECT, name), join(path, name), { recursive: true });
  }
  return path;
}

test("the program of the package says in one line that Node is too old", async ({ onTestFinished }) => {
  const cwd = await copyProgram(onTestFinished);
  const pretend = 'Object.defineProperty(process.versions, "node", { value: "20.20.2" })';
  const args = ["--import", `data:text/javascript,${encodeURIComponent(pretend)}`, "bin/lance-gateway.js"];
  const { code, output } = await new Promise<{ code: unknown; output: string }>((resolve) => {
    execFile(process.execPath, args, { cwd }, (error, stdout, stderr) =>
      resolve({ code: error?.code, output: stdout + stderr }),
    );
  });
  assert.equal(code, 1);
  assert.ok(
    output.startsWith(`lance-gateway: Node ${OLDEST_NODE} or newer is needed; this is 20.20.2 (`),
    output,
  );
  assert.equal(output.indexOf("\n"), output.length - 1, "it is one line");
});

test("the program of a clone runs its sources in the caller's directory", async ({ onTestFinished }) => {
  const clone = await copyProgram(onTestFinished);
  for (const name of ["scripts", "src", "node_modules"]) {
    await symlink(join(PROJECT, name), join(clone, name));
  }
  const { path: cwd, remove } = await temporaryDirectory();
  onTestFinished(remove);
  await writeFile(join(cwd, "gateway.yaml"), "port: 4321\n");
  const args = [join(clone, "bin", "lance-gateway.js"), "config", "check", "--config", "gateway.yaml"];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd });
  assert.equal(stdout, "the configuration is valid\n");
});

test("the oldest Node of the package satisfies its dependencies", async () => {
  const lock = JSON.parse(await readFile(join(PROJECT, "package-lock.json"), "utf8")) as {
    packages: Record<string, { dev?: boolean; engines?: { node?: string } }>;
  };
  const needs = Object.entries(lock.packages).flatMap(([name, { dev, engines }]) => {
    const least = dev ? undefined : /^>= ?([\d.]+)$/.exec(engines?.node ?? "")?.[1];
    return least === undefined ? [] : [{ name, least }];
  });
  assert.ok(needs.length > 5);
  const isNewer = (a: string, b: string) => a.localeCompare(b, "en", { numeric: true }) > 0;
  assert.deepEqual(
    needs.filter(({ least }) => isNewer(least, OLDEST_NODE)),
    [],
  );
});
