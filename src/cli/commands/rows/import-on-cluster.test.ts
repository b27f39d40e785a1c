import assert from "node:assert/strict";
import { test } from "vitest";
import { clientOf, silent, temporaryDirectory } from "../../../../test/fixtures/dir/directory-backend.ts";
import { rows } from "../../../../test/fixtures/dir/rows.ts";
import { until } from "../../../../test/support/until.ts";
import { createDirectoryBackend } from "../../../backends/dir/index.ts";
import { runProgram } from "../../program.ts";

const importOnRay = (...args: readonly string[]) => runProgram(["import", ...args, "--engine", "ray"], {});

test.for([
  [["/data/*.csv", "t"], /a new table from csv needs --type for each column with --engine ray/],
  [["/data/a.jsonl", "t", "--round", "--type", "a=int64"], /--encoding and --round need --engine embedded/],
  [["/data/a.tsv", "t", "--mode", "append", "--encoding", "latin1"], /--engine ray reads texts in UTF-8/],
  [["/data/a.csv", "t", "--mode", "append", "--type", "a=int64"], /--type is for new columns/],
  [["/data/a.csv", "t", "--type", "a=integer"], /"integer" is not the name of a type/],
  [["/data", "t"], /has none of the endings/],
  [["/data/a.parquet", "t", "--mode", "overwrite", "--yes"], /--mode create or append, and not overwrite/],
  [["/data/a.parquet", "t", "--round"], /--encoding, --type and --round are for csv/],
  [["gs://bucket/*.parquet", "t"], /must be an absolute path or start with s3:/],
  [["s3://bucket/../a.parquet", "t"], /only dots/],
  [["/data/a.parquet", "t", "--uri", "http://127.0.0.1:1"], /works on a directory/],
] as const)("refuses %j, which a cluster does not take", async ([args, reason], t) => {
  const place = args.includes("--uri" as never) ? [] : ["--root", await temporaryDirectory(t)];
  await assert.rejects(importOnRay(...args, ...place), reason);
});

test("removes a table that it has declared if no gateway begins, and keeps one that has rows", async (t) => {
  const root = await temporaryDirectory(t);
  const client = clientOf(await createDirectoryBackend({ root, log: silent }));
  t.onTestFinished(client.close);
  await client.upload("createTable", "t", {}, rows([1]));
  const own = ["--root", root, "--wait", "0s"];
  const noGateway =
    /no gateway of the catalog has begun the import; one with --job-engine ray and --import-loc/;
  await assert.rejects(importOnRay("/data/*.parquet", "new", ...own), noGateway);
  await assert.rejects(importOnRay("/data/*.parquet", "t", "--mode", "append", ...own), noGateway);
  await assert.rejects(importOnRay("/data/*.parquet", "t", ...own), /already exists/);
  assert.deepEqual((await client.call("listTables", "")).tables, ["t"]);
}, 60_000);

test("keeps a table that another program has declared under the name of its own", async (t) => {
  const root = await temporaryDirectory(t);
  const client = clientOf(await createDirectoryBackend({ root, log: silent }));
  t.onTestFinished(client.close);
  const importing = importOnRay("/data/*.parquet", "new", "--root", root, "--wait", "2s");
  importing.catch(() => {});
  await until(async () => (await client.call("listTables", "", { includeDeclared: true })).tables.length > 0);
  await client.call("dropTable", "new");
  await client.call("declareTable", "new", { location: "other" });
  await assert.rejects(importing, /no gateway of the catalog has begun the import/);
  assert.deepEqual((await client.call("listTables", "", { includeDeclared: true })).tables, ["new"]);
}, 60_000);
