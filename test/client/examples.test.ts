import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { describe, it } from "vitest";
import { temporaryDirectory } from "../support/directory.ts";
import { copyExample } from "../support/examples.ts";
import { startDirectoryServer } from "../support/server.ts";

/** Runs an example on the sources instead of the built package. */
async function runExample(name: string, argument: string): Promise<string> {
  const { path, remove } = await temporaryDirectory();
  try {
    const file = await copyExample(name, path);
    return (await promisify(execFile)(process.execPath, [file, argument])).stdout;
  } finally {
    await remove();
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
