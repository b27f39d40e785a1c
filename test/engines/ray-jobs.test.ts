import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type GatewayProcess, startGateway } from "../clients/support/gateway.ts";
import { BUCKET, startS3 } from "../clients/support/store-servers.ts";
import { ROOT, runTool } from "../clients/support/tools.ts";
import { freePort } from "../support/free-port.ts";
import { MAIN, NODE } from "../support/node-command.ts";
import { until } from "../support/until.ts";
import { processOf } from "./ray/cluster-processes.ts";
import { type RayHead, rayInterpreter, startRayHead } from "./ray-head.ts";

/** Whether each kind of index is built in each place. */
const EVERYTHING = process.env["RAY_TESTS"] === "all";

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

const driver = () => processOf(head, "python\0-m\0lance_gateway_ray\0");

it("builds IVF_PQ and IVF_SQ for LanceDB's client with the answers of an embedded index", async () => {
  const output = await session("session.py");
  const { recall, jobs } = JSON.parse(output.trim().split("\n").at(-1) as string);
  process.stderr.write(`recall ${JSON.stringify(recall)}\n`);
  assert.equal(jobs, 3);
  // A driver ends a moment after its job.
  const ended = async () => (await submissions()).map(({ status }) => status);
  await expect.poll(ended).toEqual(["SUCCEEDED", "SUCCEEDED"]);
}, 600_000);

it("builds BTREE for the CLI over gRPC, also if the driver is killed, and shows no secret", async () => {
  const create = ["index", "create", "on_ray", "id", "--type", "BTREE", "--name", "by_id"];
  const building = runTool(node, [...flags, MAIN, ...create, "--address", gateway.address]);
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

/** Whether the tables have managed versions. */
const MANAGED = EVERYTHING ? ["true", "false"] : ["true"];

/** How indices are asked for. */
const WAYS = EVERYTHING ? ["client", JSON.stringify([...NODE, MAIN])] : ["rest"];

type Columns = "vectors" | "scalars";

async function compareKinds(place: Pick<GatewayProcess, "uri">, columns: Columns): Promise<void> {
  for (const managed of MANAGED) {
    const output = await sessionOn(place, "kinds.py", columns, managed, ...WAYS);
    process.stderr.write(`${columns}, managed versions ${managed}: ${output.trim().split("\n").at(-1)}\n`);
  }
}

it.each<Columns>(EVERYTHING ? ["vectors", "scalars"] : ["vectors"])(
  "builds each kind of index of %s with the answers of the gateway's own",
  (columns) => compareKinds(gateway, columns),
  900_000,
);

/** Has the CLI build RTREE over gRPC, and the upkeep of the catalog at some place. */
async function keepGeometries(
  { uri, address }: GatewayProcess,
  place: readonly string[],
  ...made: readonly string[]
): Promise<void> {
  await sessionOn({ uri }, "geometry.py", "make", ...made);
  const create = ["index", "create", "places", "at", "--type", "RTREE", "--name", "by_place", "--wait"];
  await runTool(node, [...flags, MAIN, ...create, "--address", address]);
  await sessionOn({ uri }, "geometry.py", "change");
  assert.match(await runTool(node, [...flags, MAIN, "optimize", "places", ...place]), /places/);
  await sessionOn({ uri }, "geometry.py", "drop");
}

it("builds RTREE for the CLI over gRPC, with the rows that pylance finds without it, and the upkeep of the gateway keeps it", async () => {
  await keepGeometries(gateway, ["--root", root]);
}, 600_000);

it("checks that the nodes of a cluster reach a gateway", async () => {
  const check = async (address: string) => {
    const submit = ["job", "submit", "--address", head.address, "--"];
    const work = ["python", "-m", "lance_gateway_ray.check", "--gateway", address];
    const env = { RAY_AUTH_MODE: "token", RAY_AUTH_TOKEN_PATH: head.tokenFile };
    return runTool(join(dirname(python), "ray"), [...submit, ...work], { env });
  };
  const [good, bad] = await Promise.allSettled([
    check(gateway.uri),
    check(`http://127.0.0.1:${await freePort()}`),
  ]);
  assert.match(JSON.stringify(good), /"fulfilled".*gateway answers/);
  assert.match(JSON.stringify(bad), /"rejected"/);
  assert.match(String((bad as PromiseRejectedResult).reason), /cannot work for the gateway: .*refused/);
}, 300_000);

it("joins fragments for upkeep and for the CLI, and keeps rows and indices", async () => {
  const made = Number((await session("compaction.py", "make")).trim().split("\n").at(-1));
  const own = ["optimize", "left", "--engine", "ray", "--root", root];
  assert.match(await runTool(node, [...flags, MAIN, ...own]), /optimized +left +6 -> [12] /);
  assert.equal(Number((await session("compaction.py", "check")).trim().split("\n").at(-1)), made + 1);
}, 600_000);

it.each([
  ["a plain", "plain"],
  ["an indexed", "indexed"],
])(
  "joins fragments of %s table beside updates of all of them, and loses and doubles no row",
  async (_, kind) => {
    await session("busy.py", "make", `busy_${kind}`, kind);
    const output = await session("busy.py", "write", `busy_${kind}`);
    process.stderr.write(`${kind}: ${output.trim().split("\n").at(-1)}\n`);
  },
  900_000,
);

it("works in a bucket with the credentials that the gateway hands out, also beside updates of managed versions", async () => {
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
    await keepGeometries(bucket, ["--root", place, ...own], "managed");
    await sessionOn(bucket, "busy.py", "make", "busy", "indexed", "managed");
    const output = await sessionOn(bucket, "busy.py", "write", "busy");
    process.stderr.write(`in a bucket: ${output.trim().split("\n").at(-1)}\n`);
    if (EVERYTHING) {
      await sessionOn(bucket, "session.py");
      await compareKinds(bucket, "vectors");
      await compareKinds(bucket, "scalars");
    }
  } finally {
    await bucket.close();
    await server.close();
  }
}, 1_800_000);
