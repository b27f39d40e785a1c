import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, it } from "vitest";
import { type GatewayProcess, startGateway } from "../clients/support/gateway.ts";
import { BUCKET, startS3 } from "../clients/support/store-servers.ts";
import { runTool } from "../clients/support/tools.ts";
import { freePort } from "../support/free-port.ts";
import { MAIN, NODE } from "../support/node-command.ts";
import { until } from "../support/until.ts";
import { type RayHead, rayInterpreter, startRayHead } from "./ray-head.ts";

const ROWS = 20_000;

let python: string;
let head: RayHead;
let folder: string;
let root: string;
let gateway: GatewayProcess;

const sessionOn = async (uri: string, ...args: readonly string[]) => {
  const output = await runTool(python, [join(import.meta.dirname, "ray", "imports.py"), uri, ...args]);
  return output.trim().split("\n").at(-1) ?? "";
};

const session = (...args: readonly string[]) => sessionOn(gateway.uri, ...args);

const [node, ...flags] = NODE;
const cli = (...args: readonly string[]) => runTool(node, [...flags, MAIN, ...args, "--root", root]);
const importOnRay = (source: string, table: string, ...args: readonly string[]) =>
  cli("import", join(folder, source), table, "--engine", "ray", ...args);

beforeAll(async () => {
  python = await rayInterpreter();
  head = await startRayHead(python);
  folder = mkdtempSync(join(tmpdir(), "lance-gateway-files-"));
  root = mkdtempSync(join(tmpdir(), "lance-gateway-ray-"));
  gateway = await startGateway(
    ...["--root", root, "--port", `${await freePort()}`, "--job-engine", "ray"],
    ...["--ray-address", head.address, "--ray-token-file", head.tokenFile, "--ray-workers", "2"],
    ...["--import-location", folder],
  );
  await session("make", folder);
  await cli("import", join(folder, "whole", "rows.parquet"), "here");
  await cli("import", join(folder, "whole", "rows.parquet"), "appended");
}, 600_000);

afterAll(async () => {
  await gateway?.close();
  await head?.close();
  for (const each of [folder, root]) rmSync(each, { recursive: true, force: true });
}, 60_000);

/** Kills the first driver of the import into a table. */
async function killDriverOf(table: string): Promise<void> {
  const open = join(root, "data", ".jobs", "open");
  const isOfTable = async (name: string) => {
    const text = await readFile(join(open, name), "utf8").catch(() => "");
    return text.includes(`"${table}"`);
  };
  let killed = false;
  await until(async () => {
    for (const name of await readdir(open).catch(() => [])) {
      if (!(await isOfTable(name))) continue;
      for (const id of await head.processes()) {
        const command = await readFile(`/proc/${id}/cmdline`, "utf8").catch(() => "");
        if (!command.startsWith("python\0-m\0lance_gateway_ray\0")) continue;
        if (!command.includes(name.replace(".json", ""))) continue;
        process.kill(id, "SIGKILL");
        killed = true;
      }
    }
    return killed;
  });
}

it("imports files with the rows of an embedded import, all or none, also if a driver dies", async () => {
  // A gateway looks for the jobs of commands every 15 seconds; it takes all of them at once.
  const [made, appended, refused, elsewhere] = await Promise.all([
    importOnRay("in/part-*.parquet", "on_ray"),
    importOnRay("in", "appended", "--mode", "append", "--format", "parquet", "--json"),
    importOnRay("bad/*.parquet", "here", "--mode", "append").catch((error: Error) => error.message),
    importOnRay("../*.parquet", "elsewhere").catch((error: Error) => error.message),
    killDriverOf("appended"),
  ]);
  assert.match(made, /^imported 20000 rows of .*part-\*\.parquet into on_ray, version 1\n$/);
  assert.deepEqual(JSON.parse(appended), { path: "appended", rows: ROWS, version: 2 });
  assert.match(refused, /bad\/part-2\.parquet: column 'small': Integer value 1099511627776/);
  assert.match(elsewhere, /is outside of the locations/);
  assert.doesNotMatch(await cli("ls"), /elsewhere/);
  assert.equal(await session("compare", "on_ray"), String(ROWS));
  assert.equal(await session("count", "appended"), String(2 * ROWS));
}, 600_000);

it("imports CSV and lines of JSON with the rows of an embedded import, all or none", async () => {
  for (const format of ["csv", "jsonl"]) {
    await cli("import", join(folder, "whole", "none.parquet"), format);
    for (const [part, filter] of ["id < 7000", "id >= 7000"].entries())
      await cli("export", "here", join(folder, "texts", `part-${part}.${format}`), "--filter", filter);
  }
  const types = ["--type", "id=int64", "--type", "small=int64"];
  const [csv, jsonl, made, ...refused] = await Promise.all([
    importOnRay("texts/*.csv", "csv", "--mode", "append", "--json"),
    importOnRay("texts/*.jsonl", "jsonl", "--mode", "append", "--json"),
    importOnRay("bad/*.csv", "typed", ...types),
    importOnRay("bad/*.csv", "here", "--mode", "append").catch((error: Error) => error.message),
    importOnRay("bad/*.csv", "narrow", "--type", "id=int64", "--type", "small=int8").catch(
      (error: Error) => error.message,
    ),
  ]);
  assert.deepEqual(JSON.parse(csv), { path: "csv", rows: ROWS, version: 2 });
  assert.deepEqual(JSON.parse(jsonl), { path: "jsonl", rows: ROWS, version: 2 });
  assert.match(made, /^imported 6000 rows of .* into typed, version 1\n$/);
  for (const message of refused)
    assert.match(
      message,
      /on Ray: RefusedError: \S*bad\/part-2\.csv, line 1502: column 'small': '1099511627776' is not read as int8/,
    );
  assert.doesNotMatch(await cli("ls"), /narrow/);
  for (const table of ["csv", "jsonl"]) assert.equal(await session("compare", table), String(ROWS));
  assert.equal(await session("compare", "on_ray"), String(ROWS));
  assert.equal(await session("count", "typed"), "6000");
}, 600_000);

it("imports from a bucket with the credentials that the gateway hands out", async () => {
  const server = await startS3();
  const [place, vendFile] = [`s3://${BUCKET}/import`, join(folder, "vend.json")];
  const handedOut = ["read", "write"].map((access) => ({
    ...{ location: place, access, "storage-options": server.options },
  }));
  await writeFile(vendFile, JSON.stringify({ locations: handedOut }));
  const storage = Object.entries(server.options).map(([key, value]) => `--storage-option=${key}=${value}`);
  const own = ["--root", `${place}/catalog`, ...storage];
  const bucket = await startGateway(
    ...[...own, "--port", `${await freePort()}`, "--job-engine", "ray", "--ray-address", head.address],
    ...["--ray-token-file", head.tokenFile, "--ray-workers", "2", "--import-location", `${place}/raw`],
    ...["--vend", "static", "--vend-file", vendFile, "--vend-access", "write"],
  );
  try {
    await session("upload", folder, JSON.stringify(server.options), `${BUCKET}/import/raw`);
    const source = `${place}/raw/part-*.parquet`;
    const made = await runTool(node, [...flags, MAIN, "import", source, "t", "--engine", "ray", ...own]);
    assert.match(made, /^imported 20000 rows of .* into t, version 1\n$/);
    const outside = ["import", `${place}/other/*.parquet`, "u", "--engine", "ray", ...own];
    await assert.rejects(runTool(node, [...flags, MAIN, ...outside]), /is outside of the locations/);
    assert.equal(await sessionOn(bucket.uri, "count", "t"), String(ROWS));
  } finally {
    await bucket.close();
    await server.close();
  }
}, 600_000);

it("leaves files that gc removes, and no table misses any", async () => {
  await gateway.close();
  const collect = async (...args: readonly string[]) => {
    const found = await cli("gc", "--older-than", "0s", "--exclusive", "--json", ...args);
    const { leftovers } = JSON.parse(found) as { leftovers: { kind: string }[] };
    return leftovers.filter(({ kind }) => kind === "table file").length;
  };
  // At least those of the import that was refused in the middle.
  assert.ok((await collect("--delete", "--yes")) > 0);
  assert.equal(await collect(), 0);
  gateway = await startGateway("--root", root, "--port", "0");
  assert.equal(await session("compare", "on_ray"), String(ROWS));
  assert.equal(await session("count", "appended"), String(2 * ROWS));
}, 600_000);
