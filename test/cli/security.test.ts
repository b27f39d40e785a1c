import assert from "node:assert/strict";
import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import * as lancedb from "@lancedb/lancedb";
import { describe, it, type TestContext, vi } from "vitest";
import { temporaryDirectory } from "../support/directory.ts";
import { startProgram, startProgramIn } from "../support/program.ts";

async function folderOf({ onTestFinished }: TestContext): Promise<string> {
  const { path, remove } = await temporaryDirectory();
  onTestFinished(remove);
  return path;
}

async function run(...args: readonly string[]) {
  const { code, stdout, stderr } = await startProgram(...args).ended;
  return { code, stdout, stderr };
}

async function serve({ onTestFinished }: TestContext, ...args: readonly string[]): Promise<number> {
  const program = startProgram("serve", "--port", "0", ...args);
  onTestFinished(async () => {
    program.child.kill();
    await program.ended;
  });
  return program.listening();
}

describe("lance-gateway keys", () => {
  it("creates keys with which LanceDB's client signs in, and revokes them", async (context) => {
    const folder = await folderOf(context);
    const file = join(folder, "keys.json");
    const create = (name: string, role: string) =>
      run("keys", "create", "--file", file, "--name", name, "--role", role);
    const { stdout: writer } = await create("etl", "writer");
    const { stdout: reader } = await create("dashboards", "reader");
    assert.match(writer, /^lgw_[0-9a-f]{12}_[\w-]{43}\n$/);
    const root = join(folder, "root");
    const port = await serve(context, "--root", root, "--auth", "api-key", "--api-keys-file", file);
    const connect = (key: string) =>
      lancedb.connect({ uri: "db://any", apiKey: key.trim(), hostOverride: `http://127.0.0.1:${port}` });

    await (await connect(writer)).createTable("people", [{ id: 1 }]);
    const db = await connect(reader);
    assert.equal(await (await db.openTable("people")).countRows(), 1);
    await assert.rejects(
      db.createTable("more", [{ id: 1 }]),
      /403 Forbidden.*CreateTable \(write\) on more/s,
    );

    const { stdout: listed } = await run("keys", "list", "--file", file);
    const [id = ""] = /^\w+(?= +dashboards)/m.exec(listed) ?? [];
    assert.doesNotMatch(listed, /sha256/);
    const revoked = await run("keys", "revoke", "--file", file, id);
    assert.deepEqual(revoked, { code: 0, stdout: `revoked ${id}\n`, stderr: "" });
    await vi.waitFor(() => assert.rejects(db.tableNames(), /401 Unauthorized/), { timeout: 60_000 });
    assert.deepEqual(await (await connect(writer)).tableNames(), ["people"]);
  });

  it("answers scripts in JSON, with the key and its id", async (context) => {
    const file = join(await folderOf(context), "keys.json");
    const json = async (...args: readonly string[]) =>
      JSON.parse((await run("keys", ...args, "--file", file, "--json")).stdout);
    const { key, ...facts } = await json("create", "--name", "etl", "--role", "writer", "--expires", "1h");
    assert.equal(key.split("_")[1], facts.id);
    assert.deepEqual(Object.keys(facts), ["id", "name", "role", "created", "expires"]);
    assert.deepEqual(await json("list"), { keys: [facts] });
    assert.deepEqual(await json("revoke", facts.id), { id: facts.id });
    assert.deepEqual(await json("list"), { keys: [] });
  });

  it("says in a single line what is wrong", async (context) => {
    const file = join(await folderOf(context), "keys.json");
    for (const [args, code, message] of [
      [["create", "--name", "a", "--role", "reader"], 2, /--file is missing/],
      [["create", "--file", file, "--role", "reader"], 2, /create requires --name/],
      [["create", "--file", file, "--name", "a", "--role", "king"], 2, /--role must be one of owner/],
      [
        ["create", "--file", file, "--name", "a", "--role", "reader", "--scope", "$"],
        2,
        /--scope must be an object/,
      ],
      [["frob", "--file", file], 2, /create, list, revoke/],
      [["revoke", "--file", file], 2, /needs the id of a key/],
      [["revoke", "--file", file, "0"], 1, /has no key 0/],
      [["list", "--file", file], 1, /keys\.json/],
    ] as const) {
      const ending = await run("keys", ...args);
      assert.match(ending.stderr, /^lance-gateway: [^\n]+\n$/);
      assert.match(ending.stderr, message);
      assert.equal(ending.code, code, ending.stderr);
    }
  });
});

describe("lance-gateway serve", () => {
  it("does not listen for other machines while it is open", async (context) => {
    const root = join(await folderOf(context), "root");
    const { code, stderr } = await run("serve", "--root", root, "--host", "0.0.0.0", "--port", "0");
    assert.equal(code, 2);
    assert.match(stderr, /^lance-gateway: --host 0\.0\.0\.0 can be reached from other machines[^\n]*\n$/);
  });

  it("writes nothing into the directory with --read-only", async (context) => {
    const root = join(await folderOf(context), "root");
    await mkdir(root);
    const port = await serve(context, "--root", root, "--read-only");
    const answer = await fetch(`http://127.0.0.1:${port}/v1/namespace/a/create`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: "{}",
    });
    assert.equal(answer.status, 403);
    assert.equal((await fetch(`http://127.0.0.1:${port}/v1/namespace/$/table/list`)).status, 200);
    assert.deepEqual(await readdir(root), []);
  });
});

describe("lance-gateway serve", () => {
  it("warns of a variable that is misspelt, because the gateway would do what the option forbids", async (context) => {
    const root = await folderOf(context);
    const program = startProgramIn(
      { LANCE_GATEWAY_READONLY: "true" },
      "serve",
      "--port",
      "0",
      "--root",
      root,
    );
    await program.listening();
    program.child.kill();
    const { stderr } = await program.ended;
    assert.match(
      stderr,
      /"level":40.*LANCE_GATEWAY_READONLY is unknown and has no effect; did you mean LANCE_GATEWAY_READ_ONLY\?/,
    );
  });
});
