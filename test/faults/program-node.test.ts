import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "vitest";
import { OLDEST_NODE } from "../../bin/node-version.js";

const PROJECT = join(import.meta.dirname, "../..");

test("the program of the package says in one line that Node is too old", async () => {
  const pretend = 'Object.defineProperty(process.versions, "node", { value: "20.20.2" })';
  const args = ["--import", `data:text/javascript,${encodeURIComponent(pretend)}`, "bin/lance-gateway.js"];
  const { code, output } = await new Promise<{ code: unknown; output: string }>((resolve) => {
    execFile(process.execPath, args, { cwd: PROJECT }, (error, stdout, stderr) =>
      resolve({ code: error?.code, output: stdout + stderr }),
    );
  });
  assert.equal(code, 1);
  assert.equal(output, `lance-gateway: Node ${OLDEST_NODE} or newer is needed; this is 20.20.2\n`);
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
