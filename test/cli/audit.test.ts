import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it, type TestContext } from "vitest";
import { temporaryDirectory } from "../support/directory.ts";
import { startProgram } from "../support/program.ts";

async function serve({ onTestFinished }: TestContext, ...args: readonly string[]) {
  const { path: folder, remove } = await temporaryDirectory();
  const program = startProgram("serve", "--port", "0", "--root", join(folder, "root"), ...args);
  onTestFinished(async () => {
    program.child.kill();
    await program.ended;
    await remove();
  });
  const call = async (port: number, path: string) => {
    const init = { method: "POST", headers: { "content-type": "application/json" }, body: "{}" };
    return (await fetch(`http://127.0.0.1:${port}/v1${path}`, init)).status;
  };
  return { folder, program, call };
}

describe("lance-gateway serve --access-log", () => {
  it("writes a line about each request, and the log says when the gateway listens, drains and ends", async (context) => {
    const folder = await temporaryDirectory();
    context.onTestFinished(folder.remove);
    const file = join(folder.path, "access.jsonl");
    const { program, call } = await serve(context, "--access-log", file);
    const port = await program.listening();
    await call(port, "/namespace/a/create");
    await call(port, "/nothing");
    program.child.kill();
    const { stderr } = await program.ended;
    const lines = (await readFile(file, "utf8")).trimEnd().split("\n");
    assert.deepEqual(
      lines.map((line) => JSON.parse(line)).map(({ code, status }) => [code, status]),
      [
        ["OK", 200],
        ["RouteNotFound", 404],
      ],
    );
    const told = stderr.match(/"msg":"\w+( ready)?"/g)?.map((text) => text.slice(7, -1)) ?? [];
    const expected = ["listening", "stopping", "draining", "stopped"];
    assert.deepEqual(
      told.filter((text) => expected.includes(text)),
      expected,
    );
  });
});

describe("lance-gateway serve --audit-log", () => {
  it("fails calls with --audit-required while the disk is full, and says so once", async (context) => {
    const { program, call } = await serve(context, "--audit-log", "/dev/full", "--audit-required");
    const port = await program.listening();
    assert.equal(await call(port, "/namespace/a/create"), 503);
    assert.equal(await call(port, "/namespace/b/create"), 503);
    program.child.kill();
    const { stderr } = await program.ended;
    assert.equal(stderr.match(/"level":50.*the audit log cannot be written/g)?.length, 1);
  });

  it("writes its lines alone to standard output", async (context) => {
    const { program, call } = await serve(context, "--audit-log", "-");
    let seen = "";
    const port = await new Promise<number>((resolve) => {
      program.child.stderr?.on("data", (piece) => {
        seen += piece;
        const found = /REST\s+http:\/\/127\.0\.0\.1:(\d+)/.exec(seen)?.[1];
        if (found !== undefined) resolve(Number(found));
      });
    });
    assert.equal(await call(port, "/namespace/a/create"), 200);
    program.child.kill();
    const lines = (await program.ended).stdout.trimEnd().split("\n");
    assert.deepEqual(
      lines.map((line) => JSON.parse(line)).map(({ operation, object }) => [operation, object]),
      [["CreateNamespace", "a"]],
    );
  });
});
