import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, it } from "vitest";
import { temporaryDirectory } from "../support/directory.ts";
import { startDirectoryServer } from "../support/server.ts";

const ROOT = join(import.meta.dirname, "..", "..");

/** Runs an example on the sources instead of the built package. */
async function runExample(name: string, argument: string): Promise<string> {
  const source = await readFile(join(ROOT, "examples", name), "utf8");
  const file = join(import.meta.dirname, `.example-${process.pid}-${name}`);
  await writeFile(file, source.replace('"lance-gateway/client"', '"../../src/client/index.ts"'));
  try {
    return (await promisify(execFile)(process.execPath, [file, argument])).stdout;
  } finally {
    await rm(file);
  }
}

describe("the examples", () => {
  it("tables.ts", async () => {
    const { path, remove } = await temporaryDirectory();
    for (const _again of [1, 2]) {
      assert.equal(await runExample("tables.ts", path), "table people\nnearest Ada\n");
    }
    await remove();
  });

  it("server.ts", async () => {
    const server = await startDirectoryServer();
    const printed = await runExample("server.ts", `http://127.0.0.1:${server.port}`);
    await server.close();
    assert.equal(printed, "0 tables\nTableNotFound 404\n");
  });
});
