import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, it } from "vitest";
import { writeArrowFiles } from "./support/arrow-files.ts";
import { type GatewayProcess, startGateway } from "./support/gateway.ts";
import { goPluginsFolder } from "./support/go-plugins.ts";
import { recordPrinted } from "./support/session.ts";
import { ROOT, runSession, runTool } from "./support/tools.ts";

const cache = join(ROOT, ".cache");
const module = join(import.meta.dirname, "go");

/** Generates the stubs as a module of their own, which the session's `go.mod` refers to. */
async function generateStubs(): Promise<void> {
  const bin = await goPluginsFolder();
  const path = `${bin}:${join(ROOT, "node_modules", ".bin")}:${process.env["PATH"]}`;
  const template = join(module, "buf.gen.yaml");
  await runTool("buf", ["generate", "--template", template, "--path", "proto/lance/namespace"], {
    env: { PATH: path },
  });
  const stubs = join(cache, "go", "contract");
  mkdirSync(stubs, { recursive: true });
  writeFileSync(join(stubs, "go.mod"), "module contract\n\ngo 1.25.0\n");
}

describe("a gRPC client generated for Go", () => {
  let gateway: GatewayProcess;
  beforeAll(async () => {
    gateway = await startGateway();
  });
  afterAll(() => gateway.close());

  it("has an ordinary session", async () => {
    await generateStubs();
    const program = join(cache, "bin", "go-session");
    await runTool("go", ["build", "-o", program, "."], { cwd: module });
    recordPrinted(await runSession(program, [gateway.address, writeArrowFiles()]));
  });
});

describe("arrow-go's client for Flight SQL", () => {
  let gateway: GatewayProcess;
  beforeAll(async () => {
    gateway = await startGateway();
  });
  afterAll(() => gateway.close());

  it("has an ordinary session", async () => {
    const program = join(cache, "bin", "go-flight-session");
    await runTool("go", ["build", "-o", program, "."], { cwd: join(import.meta.dirname, "go-flight") });
    await runTool(program, [gateway.address]);
  });
});
