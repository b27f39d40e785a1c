import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type GatewayProcess, startGateway } from "../clients/support/gateway.ts";
import { ROOT, runTool } from "../clients/support/tools.ts";
import { freePort } from "../support/free-port.ts";
import { MAIN, NODE } from "../support/node-command.ts";
import { until } from "../support/until.ts";
import { type RayHead, rayInterpreter, startRayHead } from "./ray-head.ts";

let python: string;
let head: RayHead;
let gateway: GatewayProcess;

beforeAll(async () => {
  python = await rayInterpreter();
  head = await startRayHead(python);
  const port = await freePort();
  gateway = await startGateway(
    ...["--port", `${port}`, "--job-engine", "ray", "--ray-address", head.address],
    ...["--ray-token-file", head.tokenFile, "--ray-workers", "2", "--job-engine-min-rows", "1000"],
  );
}, 600_000);

afterAll(async () => {
  await gateway?.close();
  await head?.close();
}, 60_000);

it("has a driver whose own tests pass", async () => {
  const folder = join(ROOT, "python");
  const env = { PYTHONPATH: folder, PYTHONDONTWRITEBYTECODE: "1" };
  await runTool(python, ["-m", "unittest", "discover", join(folder, "tests")], { env });
}, 120_000);

/** Returns the jobs as Ray lists them. */
async function submissions(): Promise<readonly { submission_id: string; status: string }[]> {
  return JSON.parse(await head.ask("jobs/"));
}

const [node, ...flags] = NODE;
const cli = (...args: readonly string[]) => runTool(node, [...flags, MAIN, ...args, "--uri", gateway.uri]);

const session = (name: string, ...args: readonly string[]) =>
  runTool(python, [join(import.meta.dirname, "ray", name), gateway.uri, ...args]);

it("builds IVF_PQ and IVF_SQ for LanceDB's client with the answers of an embedded index", async () => {
  const output = await session("session.py");
  const { recall, jobs } = JSON.parse(output.trim().split("\n").at(-1) as string);
  process.stderr.write(`recall ${JSON.stringify(recall)}\n`);
  assert.equal(jobs, 3);
  expect((await submissions()).map(({ status }) => status)).toEqual(["SUCCEEDED", "SUCCEEDED"]);
}, 600_000);

it("builds BTREE for the CLI, also if the driver is killed, and shows no secret", async () => {
  const building = cli("index", "create", "on_ray", "id", "--type", "BTREE", "--name", "by_id");
  const driverOf = async (run: number) => {
    for (const id of await head.processes()) {
      const command = await readFile(`/proc/${id}/cmdline`, "utf8").catch(() => "");
      if (command.startsWith("python\0") && command.includes(`--run\0${run}\0`.slice(0, -1))) return id;
    }
    return undefined;
  };
  await Promise.race([until(async () => (await driverOf(1)) !== undefined), building]);
  process.kill((await driverOf(1)) as number, "SIGKILL");
  await building;
  const listed = await cli("index", "ls", "on_ray", "--json");
  assert.match(listed, /"by_id"/);
  // The driver ends a moment after its job.
  const isSecond = ({ submission_id: id }: { submission_id: string }) => id.endsWith("-2");
  await until(async () => (await submissions()).some((run) => isSecond(run) && run.status !== "RUNNING"));
  const all = await submissions();
  assert.deepEqual(
    all.filter(isSecond).map(({ status }) => status),
    ["SUCCEEDED"],
  );
  const logs = await Promise.all(all.map(({ submission_id }) => head.ask(`jobs/${submission_id}/logs`)));
  const token = await readFile(head.tokenFile, "utf8");
  const shown = [JSON.stringify(all), ...logs].join("\n");
  assert.equal(shown.includes(token), false);
  assert.doesNotMatch(shown, /bearer/i);
  // A driver that is killed may not have come so far.
  for (const [place, { status }] of all.entries())
    if (status === "SUCCEEDED") assert.match(logs[place] ?? "", /lance-gateway-driver-key sha256:/);
}, 600_000);

it("joins fragments for upkeep and for the CLI, and keeps rows and indices", async () => {
  const made = Number((await session("compaction.py", "make")).trim().split("\n").at(-1));
  const own = ["optimize", "left", "--engine", "ray", "--root", gateway.root];
  assert.match(await runTool(node, [...flags, MAIN, ...own]), /optimized +left +6 -> [12] /);
  assert.equal(Number((await session("compaction.py", "check")).trim().split("\n").at(-1)), made + 1);
}, 600_000);
