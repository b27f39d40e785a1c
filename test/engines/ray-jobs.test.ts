import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type GatewayProcess, startGateway } from "../clients/support/gateway.ts";
import { BUCKET, startS3 } from "../clients/support/store-servers.ts";
import { ROOT, runTool } from "../clients/support/tools.ts";
import { freePort } from "../support/free-port.ts";
import { MAIN, NODE } from "../support/node-command.ts";
import { createRandom } from "../support/random.ts";
import { seedOf } from "../support/seed.ts";
import { until } from "../support/until.ts";
import { type RayHead, rayInterpreter, startRayHead } from "./ray-head.ts";

let python: string;
let head: RayHead;
let root: string;
let options: readonly string[];
let gateway: GatewayProcess;

beforeAll(async () => {
  python = await rayInterpreter();
  head = await startRayHead(python);
  root = mkdtempSync(join(tmpdir(), "lance-gateway-ray-"));
  options = [
    ...[
      "--root",
      root,
      "--port",
      `${await freePort()}`,
      "--job-engine",
      "ray",
      "--ray-address",
      head.address,
    ],
    ...["--ray-token-file", head.tokenFile, "--ray-workers", "2", "--job-engine-min-rows", "1000"],
  ];
  gateway = await startGateway(...options);
}, 600_000);

afterAll(async () => {
  await gateway?.close();
  await head?.close();
  rmSync(root, { recursive: true, force: true });
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

/** Runs a session on a gateway. */
const sessionOn = ({ uri }: Pick<GatewayProcess, "uri">, name: string, ...args: readonly string[]) =>
  runTool(python, [join(import.meta.dirname, "ray", name), uri, ...args]);

const session = (name: string, ...args: readonly string[]) => sessionOn(gateway, name, ...args);

/** Returns a process of the head by the beginning of its command line. */
async function processOf(start: string): Promise<number | undefined> {
  for (const id of await head.processes()) {
    const command = await readFile(`/proc/${id}/cmdline`, "utf8").catch(() => "");
    if (command.startsWith(start)) return id;
  }
  return undefined;
}

const driver = () => processOf("python\0-m\0lance_gateway_ray\0");

it("builds IVF_PQ and IVF_SQ for LanceDB's client with the answers of an embedded index", async () => {
  const output = await session("session.py");
  const { recall, jobs } = JSON.parse(output.trim().split("\n").at(-1) as string);
  process.stderr.write(`recall ${JSON.stringify(recall)}\n`);
  assert.equal(jobs, 3);
  expect((await submissions()).map(({ status }) => status)).toEqual(["SUCCEEDED", "SUCCEEDED"]);
}, 600_000);

it("builds BTREE for the CLI, also if the driver is killed, and shows no secret", async () => {
  const building = cli("index", "create", "on_ray", "id", "--type", "BTREE", "--name", "by_id");
  await Promise.race([until(async () => (await driver()) !== undefined), building]);
  process.kill((await driver()) as number, "SIGKILL");
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
  const own = ["optimize", "left", "--engine", "ray", "--root", root];
  assert.match(await runTool(node, [...flags, MAIN, ...own]), /optimized +left +6 -> [12] /);
  assert.equal(Number((await session("compaction.py", "check")).trim().split("\n").at(-1)), made + 1);
}, 600_000);

it("works in a bucket with the credentials that the gateway hands out", async () => {
  const server = await startS3();
  const vendFile = join(root, "vend.json");
  const place = `s3://${BUCKET}/ray`;
  const handedOut = { location: place, access: "write", "storage-options": server.options };
  await writeFile(vendFile, JSON.stringify({ locations: [handedOut] }));
  const own = Object.entries(server.options).map(([key, value]) => `--storage-option=${key}=${value}`);
  const vending = ["--vend", "static", "--vend-file", vendFile, "--vend-access", "write"];
  const cluster = options.slice(options.indexOf("--job-engine"));
  const port = ["--port", `${await freePort()}`];
  const bucket = await startGateway("--root", place, ...port, ...own, ...vending, ...cluster);
  try {
    await sessionOn(bucket, "compaction.py", "bucket");
  } finally {
    await bucket.close();
    await server.close();
  }
}, 600_000);

/** Number of times that each victim is killed. */
const ROUNDS = Number(process.env["RAY_KILLS"] ?? 1);

/** Longest time from the start of a driver to a kill, in milliseconds: an undisturbed run is over by then. */
const LATEST_KILL_MS = 8_000;

const random = createRandom(seedOf("TEST_SEED"));

/** Kills a process at a moment of a compaction, and returns how long its driver had been running. */
async function killDuring(table: string, kill: () => Promise<void>): Promise<void> {
  await session("compaction.py", "table", table);
  await until(async () => (await driver()) !== undefined);
  const after = random.below(LATEST_KILL_MS);
  await sleep(after);
  process.stderr.write(`${table}: killed ${after} ms after the start of the driver\n`);
  await kill();
}

const killProcess = async (start: string) => {
  const id = await processOf(start);
  if (id !== undefined) process.kill(id, "SIGKILL");
};

it.each(["worker", "driver"] as const)(
  "ends compactions with all rows and indices after the death of a %s",
  async (victim) => {
    for (let round = 0; round < ROUNDS; round++) {
      const table = `${victim}_${round}`;
      await killDuring(table, () =>
        killProcess(victim === "worker" ? "ray::" : "python\0-m\0lance_gateway_ray\0"),
      );
      await session("compaction.py", "await", table);
    }
  },
  600_000,
);

async function restartGateway(): Promise<void> {
  const gone = once(gateway.process, "exit");
  gateway.process.kill("SIGKILL");
  await gone;
  gateway = await startGateway(...options);
}

it("builds each kind of index with the answers of the gateway's own, while another gateway takes a compaction over", async () => {
  for (let round = 0; round < ROUNDS; round++) await killDuring(`gateway_${round}`, restartGateway);
  const output = await session("kinds.py");
  process.stderr.write(`${output.trim().split("\n").at(-1)}\n`);
  for (let round = 0; round < ROUNDS; round++) await session("compaction.py", "await", `gateway_${round}`);
}, 600_000);

it("keeps all rows when the head dies", async () => {
  await killDuring("head", async () => {
    for (const id of await head.processes()) process.kill(id, "SIGKILL");
  });
  await session("compaction.py", "rows", "head");
}, 600_000);
