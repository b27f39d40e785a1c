import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, it } from "vitest";
import { type GatewayProcess, startGateway } from "../clients/support/gateway.ts";
import { runTool } from "../clients/support/tools.ts";
import { freePort } from "../support/free-port.ts";
import { type RayHead, rayInterpreter, startRayHead } from "./ray-head.ts";

let python: string;
let head: RayHead;
let root: string;
let gateway: GatewayProcess;

const session = async (...args: readonly string[]) => {
  const program = join(import.meta.dirname, "ray", "columns.py");
  const output = await runTool(python, [program, gateway.uri, ...args]);
  return output.trim().split("\n").at(-1) ?? "";
};

beforeAll(async () => {
  python = await rayInterpreter();
  head = await startRayHead(python);
  root = mkdtempSync(join(tmpdir(), "lance-gateway-ray-"));
  gateway = await startGateway(
    ...["--root", root, "--port", `${await freePort()}`, "--job-engine", "ray"],
    ...["--ray-address", head.address, "--ray-token-file", head.tokenFile, "--ray-workers", "2"],
  );
}, 600_000);

afterAll(async () => {
  await gateway?.close();
  await head?.close();
  rmSync(root, { recursive: true, force: true });
}, 60_000);

it("fills columns and refreshes views with the rows of the gateway's own work", async () => {
  assert.equal(await session(), "9000");
}, 900_000);
