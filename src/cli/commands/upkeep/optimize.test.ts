import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { pino } from "pino";
import { type TestContext, test, vi } from "vitest";
import {
  openClient,
  type TestClient,
  temporaryDirectory,
} from "../../../../test/fixtures/dir/directory-backend.ts";
import { rows } from "../../../../test/fixtures/dir/rows.ts";
import { people, personStream } from "../../../../test/support/arrow.ts";
import { createCaller } from "../../../../test/support/caller.ts";
import { startRowlessServer } from "../../../../test/support/catalogs/rowless-directory.ts";
import { createComposedBackend } from "../../../backends/composed/index.ts";
import { createLocalStore } from "../../../backends/dir/format/local/local-store.ts";
import { createStorageClock } from "../../../backends/dir/format/storage-clock.ts";
import { createUpkeepLeases } from "../../../backends/dir/upkeep/lease.ts";
import { createRestBackend } from "../../../backends/rest/index.ts";
import { runProgram } from "../../program.ts";

interface Place {
  readonly root: string;
  /** A gateway that does not look after tables. */
  readonly client: TestClient;
}

/** Opens a directory with a table `t` of five fragments, an index that lacks four rows, and a table without data. */
async function openPlace(t: TestContext): Promise<Place> {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  await client.upload("createTable", "t", {}, rows([0]));
  await client.call("createTableScalarIndex", "t", { column: "id", indexType: "BTREE", name: "by_id" });
  for (let id = 1; id <= 4; id++) await client.upload("insertIntoTable", "t", {}, rows([id]));
  await client.call("declareTable", "declared");
  return { root, client };
}

/** Runs the command, and returns its exit code and its output. */
async function run({ root }: Place, ...args: readonly string[]) {
  const output: string[] = [];
  const write = vi.spyOn(process.stdout, "write").mockImplementation((text) => output.push(String(text)) > 0);
  try {
    const code = await runProgram(["optimize", ...args, "--root", root], {});
    return { code, text: output.join("") };
  } finally {
    write.mockRestore();
  }
}

async function runJson(place: Place, ...args: readonly string[]) {
  const { code, text } = await run(place, ...args, "--json");
  const { tables } = JSON.parse(text) as { readonly tables: readonly Record<string, unknown>[] };
  return { code, tables: tables.map(({ milliseconds, ...table }) => table) };
}

const versionsIn = ({ root }: Place) => readdirSync(join(root, "data", "t.lance", "_versions")).sort();

const DECLARED = { table: "declared", outcome: "skipped", reason: "it has no data" };
const BEFORE = { version: 6, fragments: 5, deleted_rows: 0, unindexed_rows: 4 };
const NOTHING = { versions_removed: 0, files_removed: 0, bytes_removed: 0 };

test("optimizes all tables beside a gateway, says what it has done, and finds nothing more to do", async (t) => {
  const place = await openPlace(t);
  const files = versionsIn(place);
  const planned = await runJson(place, "--dry-run");
  assert.deepEqual(planned, {
    code: 0,
    tables: [DECLARED, { table: "t", outcome: "optimized", before: BEFORE, ...NOTHING }],
  });
  assert.deepEqual(versionsIn(place), files, "a dry run writes nothing");

  const { code, text } = await run(place);
  assert.equal(code, 0);
  assert.match(text, /^optimized +t +5 -> 1 +0 +4 -> 0 +0 +0 B$/m);
  assert.match(text, /\n1 of 2 optimized, 0 B freed\n$/);
  assert.equal((await place.client.call("countTableRows", "t")).count, 5n);
  const { numUnindexedRows } = await place.client.call("describeTableIndexStats", "t", {
    indexName: "by_id",
  });
  assert.equal(numUnindexedRows, 0n);
  const [, again] = (await runJson(place)).tables;
  assert.equal(again?.["outcome"], "unchanged");
});

test("works on the tables that are named, and fails for those that do not exist", async (t) => {
  const place = await openPlace(t);
  const { code, tables } = await runJson(place, "t", "team/none");
  assert.equal(code, 1);
  assert.equal(tables[0]?.["rows_indexed"], 4);
  assert.deepEqual(tables[1], {
    table: "team/none",
    outcome: "failed",
    reason: "table team$none does not exist",
  });
});

test("leaves tables alone whose property says off, unless they are named", async (t) => {
  const place = await openPlace(t);
  const properties = { "lance-gateway.upkeep": "off" };
  await place.client.upload("createTable", "kept", { properties }, rows([0]));
  const { tables } = await runJson(place);
  assert.deepEqual(
    tables.find(({ table }) => table === "kept"),
    { table: "kept", outcome: "skipped", reason: "its property lance-gateway.upkeep is off" },
  );
  assert.equal((await runJson(place, "kept")).tables[0]?.["outcome"], "unchanged");
});

test("fails for a table on which another process keeps working", async (t) => {
  const place = await openPlace(t);
  const store = createLocalStore(place.root);
  const lease = await createUpkeepLeases("data", store, createStorageClock(store, "data")).acquire("t.lance");
  assert.ok(lease);
  const held = await runJson(place, "t", "--wait", "0ms");
  assert.deepEqual(held, {
    code: 1,
    tables: [{ table: "t", outcome: "failed", reason: "another process is working on the table" }],
  });
  await lease.release();
  assert.equal((await runJson(place, "t", "--wait", "0ms")).code, 0);
});

test("optimizes tables of another catalog, whose rows this gateway serves", async (t) => {
  const upstream = await startRowlessServer();
  t.onTestFinished(upstream.close);
  const uri = `http://127.0.0.1:${upstream.port}`;
  const log = pino({ level: "silent" });
  const allowedLocations = [upstream.root];
  const backend = createComposedBackend(await createRestBackend({ uri, log }), { log, allowedLocations });
  t.onTestFinished(() => backend.close());
  const client = createCaller({ backend, limits: { maxUploadBytes: 2 ** 20 } });
  const id = ["t"];
  await client.createTable({ id }, personStream(people(1)));
  await client.createTableIndex({ id, column: "id", indexType: "BTREE" });
  for (let from = 1; from < 5; from++) await client.insertIntoTable({ id }, personStream(people(1, from)));
  await client.declareTable({ id: ["declared"] });
  const output: string[] = [];
  const run = async (...args: readonly string[]) => {
    output.length = 0;
    const write = vi
      .spyOn(process.stdout, "write")
      .mockImplementation((text) => output.push(String(text)) > 0);
    try {
      const place = ["--uri", uri, "--rows", "here", "--allowed-location", upstream.root];
      assert.equal(await runProgram(["optimize", ...args, ...place, "--json"], {}), 0);
    } finally {
      write.mockRestore();
    }
    const { tables } = JSON.parse(output.join("")) as { readonly tables: readonly Record<string, unknown>[] };
    return new Map(tables.map((table) => [table["table"], table]));
  };
  assert.equal((await run("--dry-run")).get("t")?.["outcome"], "optimized");
  const done = await run("--yes");
  assert.equal(done.get("t")?.["outcome"], "optimized");
  assert.deepEqual(
    [done.get("t")?.["before"], done.get("t")?.["after"]].map((state) => {
      const { fragments, unindexed_rows } = state as { fragments: number; unindexed_rows: number };
      return [fragments, unindexed_rows];
    }),
    [
      [5, 4],
      [1, 0],
    ],
  );
  assert.match(String(done.get("declared")?.["outcome"]), /skipped/);
  assert.equal((await run("--yes")).get("t")?.["outcome"], "unchanged");
  assert.equal((await client.countTableRows({ id })).count, 5n);
  await client.dropTable({ id });
  assert.deepEqual(
    (await readdir(join(upstream.root, "data"))).filter((name) => name.startsWith("t")),
    [],
  );
});
