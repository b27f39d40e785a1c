import assert from "node:assert/strict";
import { join } from "node:path";
import { afterAll, beforeAll, describe, it } from "vitest";
import { npmTool } from "../../scripts/npm-tool.ts";
import { EXPECTED } from "./runtimes/session.ts";
import { type GatewayProcess, startGateway } from "./support/gateway.ts";
import { runTool } from "./support/tools.ts";

const MAIN = join(import.meta.dirname, "runtimes", "main.ts");

/** Other programs that run the client, and how. */
const RUNTIMES: Readonly<Record<string, () => readonly string[]>> = {
  Bun: () => [npmTool("bun", "bun/bin/bun.exe"), "run"],
  Deno: () => [npmTool("deno", "@deno/linux-x64-glibc/deno"), "run", "-A", "--no-check"],
};

describe("the client of this package, in other runtimes", () => {
  let gateway: GatewayProcess;
  beforeAll(async () => {
    gateway = await startGateway();
  });
  afterAll(() => gateway.close());

  for (const [name, runtime] of Object.entries(RUNTIMES)) {
    it(`works in ${name}`, async () => {
      const [program = "", ...args] = runtime();
      const suffix = name.toLowerCase();
      const places = [`rest=${gateway.uri}`, `connect=${gateway.uri}`];
      const printed = await runTool(program, [...args, MAIN, suffix, ...places]);
      assert.equal(printed, `rest: ${EXPECTED}\nconnect: ${EXPECTED}\n`);
    });
  }
});
