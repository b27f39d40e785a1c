import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { expect, onTestFinished, test } from "vitest";
import { temporaryDirectory } from "../support/directory.ts";
import { connectMcp, type McpClient, toolsOf } from "../support/mcp-client.ts";
import { MAIN, NODE } from "../support/node-command.ts";
import { startProgram } from "../support/program.ts";

/** How long a busy machine may take to start the program. */
const PATIENCE_MS = 100_000;

/** Starts `lance-gateway mcp`, and connects to it over standard input and output. */
async function startMcp(...args: readonly string[]): Promise<McpClient> {
  const [command = "", ...flags] = NODE;
  const client = new Client({ name: "test", version: "1" });
  const transport = new StdioClientTransport({ command, args: [...flags, MAIN, "mcp", ...args] });
  await client.connect(transport, { timeout: PATIENCE_MS });
  onTestFinished(() => client.close());
  return toolsOf(client);
}

test("an agent reads and changes a directory over standard input and output", async () => {
  const { path: root, remove } = await temporaryDirectory();
  onTestFinished(remove);
  const writer = await startMcp("--root", root, "--mcp-writes");
  await writer.call("create_table", { table: "notes", rows: [{ id: 1, text: "a" }] });
  expect(await writer.json("insert_rows", { table: "notes", rows: [{ id: 2 }] })).toMatchObject({
    inserted: 1,
  });
  const reader = await startMcp("--root", root);
  expect(await reader.json("count_rows", { table: "notes" })).toEqual({ row_count: 2 });
  await assert.rejects(reader.call("drop_table", { table: "notes" }), /drop_table/);
});

test("an agent works at a gateway, over standard input and output and behind another gateway", async () => {
  const { path: root, remove } = await temporaryDirectory();
  const owner = startProgram("serve", "--port=0", `--root=${root}`, "--mcp-writes");
  const uri = `http://127.0.0.1:${await owner.listening()}`;
  const front = startProgram("serve", "--port=0", `--uri=${uri}`);
  onTestFinished(async () => {
    for (const { child, ended } of [front, owner]) {
      child.kill("SIGTERM");
      await ended;
    }
    await remove();
  });
  const frontPort = await front.listening();
  const remote = await startMcp(`--uri=${uri}`, "--mcp-writes");
  await remote.call("create_table", { table: "notes", rows: [{ id: 1, vector: [1, 2] }] });
  await using through = await connectMcp(frontPort);
  for (const agent of [remote, through]) {
    expect((await agent.json("sample_rows", { table: "notes" }))["rows"]).toEqual([
      { id: 1, vector: [1, 2] },
    ]);
    expect(await agent.json("describe_table", { table: "notes" })).toMatchObject({
      row_count: 1,
      indices: [],
    });
    await assert.rejects(agent.call("count_rows", { table: "missing" }), /^\w*: TableNotFound: /);
  }
});
