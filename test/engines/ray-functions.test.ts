import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, it } from "vitest";
import { type GatewayProcess, startGateway } from "../clients/support/gateway.ts";
import { runTool } from "../clients/support/tools.ts";
import { freePort } from "../support/free-port.ts";
import { type RayHead, rayInterpreter, startRayHead } from "./ray-head.ts";

/** The value of a secret in the session. */
const VALUE = "a-secret-value-of-the-session";

let python: string;
let head: RayHead;
let root: string;
let gateway: GatewayProcess;

beforeAll(async () => {
  python = await rayInterpreter();
  head = await startRayHead(python);
  root = mkdtempSync(join(tmpdir(), "lance-gateway-ray-"));
  const key = join(root, "key");
  writeFileSync(key, "a key of the test with enough characters", { mode: 0o600 });
  gateway = await startGateway(
    ...["--root", join(root, "catalog"), "--port", `${await freePort()}`, "--job-engine", "ray"],
    ...["--ray-address", head.address, "--ray-token-file", head.tokenFile, "--ray-workers", "2"],
    ...["--functions", "on", "--function-secret-key-file", key],
  );
}, 600_000);

afterAll(async () => {
  await gateway?.close();
  await head?.close();
  rmSync(root, { recursive: true, force: true });
}, 60_000);

it("fills columns by the functions that LanceDB's client registers, and shows Ray no secret", async () => {
  const program = join(import.meta.dirname, "ray", "functions.py");
  const output = await runTool(python, [program, gateway.uri]);
  assert.equal(output.trim().split("\n").at(-1), '{"rows": 3011}');
  const jobs = JSON.parse(await head.ask("jobs/")) as { submission_id: string }[];
  assert.ok(jobs.length >= 5);
  const logs = await Promise.all(jobs.map(({ submission_id: id }) => head.ask(`jobs/${id}/logs`)));
  assert.doesNotMatch(JSON.stringify([jobs, logs]), new RegExp(VALUE));
}, 900_000);
