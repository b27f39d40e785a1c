import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "vitest";
import { temporaryDirectory } from "../support/directory.ts";
import { startGateway } from "./support/gateway.ts";
import { runPython } from "./support/python.ts";

/** Runs a part of the script against a gateway of its own. */
async function run(part: string, ...args: readonly string[]): Promise<void> {
  const gateway = await startGateway(...args);
  try {
    await runPython("lancedb_connections.py", gateway.uri, part);
  } finally {
    await gateway.close();
  }
}

/** Runs a part against a gateway with the databases `sales` and `events`. */
async function runConfigured(part: string): Promise<void> {
  const { path, remove } = await temporaryDirectory();
  const config = join(path, "gateway.yaml");
  const roots = ["sales", "events"].map((name) => `  ${name}: { root: ${JSON.stringify(join(path, name))} }`);
  const text = `databases:\n${roots.join("\n")}\nroutes: [{ by: header }, { by: namespace }]\n`;
  try {
    await writeFile(config, text);
    await run(part, "--config", config);
  } finally {
    await remove();
  }
}

/** Runs a part against a gateway whose engine has a small model for the tokenizer `jieba/default`. */
async function runWithModel(part: string): Promise<void> {
  const { path, remove } = await temporaryDirectory();
  try {
    await mkdir(join(path, "jieba", "default"), { recursive: true });
    await writeFile(join(path, "jieba", "default", "dict.txt"), "我们 1000 n\n中国 1000 n\n中国人 1000 n\n");
    process.env["LANCE_LANGUAGE_MODEL_HOME"] = path;
    await run(part);
  } finally {
    delete process.env["LANCE_LANGUAGE_MODEL_HOME"];
    await remove();
  }
}

describe("connections of LanceDB's client in Python", () => {
  it("region=local reaches a single database, whatever its name is", () => run("region"));

  it("region=local reaches the database of its name among several", () => runConfigured("regions"));

  it("connect_catalog gives each database tables of its own over one root", () => run("catalog"));

  it("searches by the words of a language model that the server has", () => runWithModel("jieba"));

  it("legacy blob columns become blobs, and bytes their values", () => run("legacy_blobs"));

  it("connect_catalog lists and opens configured databases", () => runConfigured("configured"));
});
