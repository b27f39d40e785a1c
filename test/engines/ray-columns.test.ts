import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, it } from "vitest";
import { type GatewayProcess, startGateway } from "../clients/support/gateway.ts";
import { runTool } from "../clients/support/tools.ts";
import { freePort } from "../support/free-port.ts";
import { type ClusterJob, jobOf, kill, killDuring, processOf } from "./ray/cluster-processes.ts";
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
  assert.equal(await session("compare"), "9000");
}, 900_000);

/** Kills a process during the backfill of a new table. */
async function fillDuring(
  table: string,
  isMoment: (job: ClusterJob) => Promise<boolean>,
  killIt: () => Promise<void>,
): Promise<string> {
  await session("make", table);
  const isNow = async () => {
    const job = await jobOf(head, root, { kind: "backfill_column", table });
    return job !== undefined && isMoment(job);
  };
  return killDuring(table, session("fill", table), isNow, killIt);
}

const isComputing = async ({ step }: ClusterJob) =>
  step === "computing" && (await processOf(head, "ray::fill_fragments")) !== undefined;

it("fills a column although a worker dies", async () => {
  const rows = await fillDuring("worker", isComputing, async () =>
    kill((await processOf(head, "ray::fill_fragments")) ?? (await processOf(head, "ray::"))),
  );
  assert.equal(rows, "9000");
}, 600_000);

it("fills a column although the driver dies when it commits", async () => {
  let driver: number | undefined;
  const isCommitting = async (job: ClusterJob) => {
    driver = job.driver;
    return job.step === "committing";
  };
  assert.equal(await fillDuring("driver", isCommitting, async () => kill(driver)), "9000");
}, 600_000);

it("fills a column although the head dies", async () => {
  assert.equal(await fillDuring("head", isComputing, () => head.replace()), "9000");
}, 600_000);
