import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { mkdir, readdir, readFile, rm, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "vitest";
import { leaveIntent, leaveMark, leaveVerdict } from "../../../../test/fixtures/dir/batch.ts";
import { openClient, silent } from "../../../../test/fixtures/dir/directory-backend.ts";
import {
  collect,
  openWorkshop,
  putFile,
  putUnlisted,
  ROWS,
  type Workshop,
} from "../../../../test/fixtures/dir/maintenance.ts";
import { createEngine } from "../engine/engine.ts";
import { loadNative } from "../engine/native/load.ts";
import type { NativeTable } from "../engine/native/native.ts";
import { createLocalStore } from "../format/local/local-store.ts";
import { keyOfName } from "../jobs/functions/placed-files.ts";
import { openDirectory } from "../open-directory.ts";
import { findLeftovers } from "./find-leftovers.ts";

const HOUR = 3_600_000;
const everything = () => true;

/** Leaves an example of each kind of leftover. */
async function leaveEverything(workshop: Workshop): Promise<string[]> {
  const job = randomUUID();
  const staged = (Date.now() - 48 * HOUR).toString(16).padStart(12, "0");
  const left = {
    "dropped table": ".dropped-0123456789abcdef",
    "staged data": `.staging-${staged}${"0".repeat(20)}`,
    upload: `.staging-upload-${staged}${"1".repeat(20)}`,
    "unfinished table": "0a1b2c3d_ns$t",
    "job file": `.jobs/claims/${job}.1`,
    probe: ".probe-00ff",
    note: ".intents/torn.json",
    "temporary file": "__manifest/_versions/18446744073709551600.manifest#42",
    lease: ".upkeep/gone.lance",
    "manifest file": "__manifest/data/cut-off.lance",
    "kept answer": `.idempotency/${Math.floor(Date.now() / (24 * HOUR)) - 9}`,
  };
  await putFile(workshop, `${left.lease}/3`, "released");
  await putFile(workshop, `${left["kept answer"]}/00ff`);
  await putFile(workshop, `${left["dropped table"]}/data/1.lance`);
  await putFile(workshop, `${left["staged data"]}/data/1.lance`);
  await putFile(workshop, `${left.upload}/target`);
  await putFile(workshop, `${left["unfinished table"]}/data/1.lance`);
  for (const path of [left["job file"], left.probe, left["temporary file"], left["manifest file"]])
    await putFile(workshop, path);
  await putFile(workshop, left.note, "{");
  return Object.entries(left)
    .map(([kind, path]) => `${kind}: ${path}`)
    .sort();
}

test("all that crashes leave is found and removed, and nothing else", async (t) => {
  const workshop = await openWorkshop(t);
  const { base, client } = workshop;
  await client.call("createNamespace", "ns");
  for (const id of ["kept", "ns$kept"]) await client.upload("createTable", id, {}, ROWS);
  await client.call("declareTable", "ns$declared");
  await client.call("declareTable", "nested", { location: "outer/inner" });
  const before = await readdir(base);
  const left = await leaveEverything(workshop);
  await putFile(workshop, ".upkeep/kept.lance/7", "released");
  assert.deepEqual(await collect(workshop), left, "a first look only tells");
  assert.deepEqual(await collect(workshop, undefined, everything), left);
  assert.deepEqual(await collect(workshop), []);
  const now = (await readdir(base)).filter(
    (name) => ![".jobs", ".intents", ".upkeep", ".idempotency"].includes(name),
  );
  assert.deepEqual(
    now,
    before.filter((name) => name !== ".intents"),
  );
  for (const id of ["kept", "ns$kept"]) await client.query(id);
  assert.deepEqual(await readdir(join(base, ".upkeep")), ["kept.lance"]);
});

test("skips what was written to recently", async (t) => {
  const workshop = await openWorkshop(t);
  await leaveEverything(workshop);
  const day = Date.now() - 24 * HOUR;
  assert.deepEqual(await collect(workshop, day, everything), ["dropped table: .dropped-0123456789abcdef"]);
  for (const path of ["data/1.lance", "data", ""])
    await utimes(join(workshop.base, "0a1b2c3d_ns$t", path), day / 1000 - 60, day / 1000 - 60);
  assert.deepEqual(await collect(workshop, day), ["unfinished table: 0a1b2c3d_ns$t"]);
  await putFile(workshop, "0a1b2c3d_ns$t/data/2.lance");
  assert.deepEqual(await collect(workshop, day), [], "a file that is new makes all of it new");
});

test("keeps a table that is registered just before its directory is removed", async (t) => {
  const workshop = await openWorkshop(t);
  const { root, client } = workshop;
  await client.upload("createTable", "t", {}, ROWS);
  await client.call("deregisterTable", "t");
  const disk = createLocalStore();
  let isRegistered = false;
  const moveDirectory = async (from: string, to: string) => {
    if (!isRegistered && from.endsWith("/t.lance")) {
      isRegistered = true;
      await client.call("registerTable", "t", { location: "t.lance" });
    }
    return disk.files.moveDirectory(from, to);
  };
  const storage = { store: { ...disk, files: { ...disk.files, moveDirectory } }, root, engineOptions: {} };
  const { context, close } = await openDirectory({ root, storage, log: silent, maintenance: false });
  t.onTestFinished(close);
  for await (const leftover of findLeftovers(context, Date.now() + 60_000))
    if (leftover.kind === "unlisted data") assert.equal(await leftover.remove(), false);
  assert.equal(isRegistered, true);
  assert.equal((await client.call("countTableRows", "t")).count, 3n);
});

test("a dataset without a row is told apart from a table of the root without one", async (t) => {
  const workshop = await openWorkshop(t);
  const { client } = workshop;
  await putUnlisted(workshop, "0a1b2c3d_ns$t");
  await putUnlisted(workshop, "first_version.lance");
  await putFile(workshop, "declared.lance/.lance-reserved");
  await client.upload("createTable", "aside", {}, ROWS);
  await client.call("deregisterTable", "aside");
  assert.deepEqual(await collect(workshop), ["unlisted data: 0a1b2c3d_ns$t", "unlisted data: aside.lance"]);
  assert.deepEqual((await client.call("listTables", "")).tables, ["declared", "first_version"]);
});

test("skips directories other than tables", async (t) => {
  const workshop = await openWorkshop(t);
  await putFile(workshop, "photos/2026/1.jpg");
  await putFile(workshop, "mixed/data/1.lance");
  await putFile(workshop, "mixed/notes.txt");
  await putFile(workshop, ".git/config");
  await mkdir(join(workshop.base, "empty.lance"));
  assert.deepEqual(await collect(workshop), []);
});

test("keeps a table that gets its row between the search and the removal", async (t) => {
  const workshop = await openWorkshop(t);
  const { client } = workshop;
  await putUnlisted(workshop, "found_data");
  const found = await collect(workshop, undefined, async () => {
    await client.call("registerTable", "again", { location: "found_data" });
    return true;
  });
  assert.deepEqual(found, ["unlisted data: found_data"]);
  await client.query("again");
});

test("a drop that was cut off after its commit is completed at the next start, and before by gc", async (t) => {
  for (const clear of ["start", "gc"] as const) {
    const workshop = await openWorkshop(t);
    const { root, base, client } = workshop;
    await client.upload("createTable", "gone", {}, ROWS);
    await client.upload("createTable", "alive", {}, ROWS);
    // As a crash leaves it: the rows are gone; the mark, the note and the data exist.
    await client.call("deregisterTable", "gone");
    await leaveMark(root, "gone.lance");
    const departures = ["gone.lance", "alive.lance"].map((location) => ({ location, remove: true }));
    await leaveIntent(root, { departures });
    await leaveVerdict(root, "committed");
    await client.close();
    if (clear === "gc") {
      assert.deepEqual(await collect(workshop, undefined, ({ kind }) => kind === "note"), [
        "note: .intents/left.json",
      ]);
    }
    const next = await openClient(t, root);
    const left = (await readdir(base)).filter((name) => name.endsWith(".lance"));
    assert.deepEqual(left, ["alive.lance"]);
    assert.deepEqual(await readdir(join(base, ".intents")), []);
    await assert.rejects(readFile(join(base, "alive.lance", ".lance-deregistered")), { code: "ENOENT" });
    await next.query("alive");
  }
});

const INDEX = "11111111-2222-3333-4444-555555555555";

test("damaged files of functions are skipped with a warning that names each, and nothing that they may need is removed", async (t) => {
  const workshop = await openWorkshop(t);
  const gone = { id: ["gone", "s"], home: "h" };
  const [left, unknown] = [randomUUID(), randomUUID()];
  const version = (objectId: string) =>
    JSON.stringify({ id: ["gone", "f"], home: "h", objectId, version: 1, artifact: { digest: "sha256:00" } });
  const put = (path: string, text: string) => putFile(workshop, `.functions/${path}`, text);
  const ofSecret = keyOfName([gone.home, ...gone.id]);
  await put(`secrets/${ofSecret}`, JSON.stringify(gone));
  await put("columns/of-gone/1", '{"location":"gone.lance"}');
  await put(`versions/${left}.1`, version(left));
  const damaged = ["secrets/a", `versions/${unknown}.1`, "names/c", "errors/d/1", "columns/e/1"];
  for (const [i, path] of damaged.entries()) await put(path, ["{", "{}", "[]", "null", ""][i] ?? "");
  async function find(): Promise<{ found: string[]; skipped: string[] }> {
    const skipped: string[] = [];
    const log = Object.assign(Object.create(silent), {
      warn: ({ file }: { file: string }) => skipped.push(file.slice(file.indexOf(".functions/") + 11)),
    });
    const { context, close } = await openDirectory({ root: workshop.root, log: silent });
    try {
      const found: string[] = [];
      for await (const { path, kind, remove } of findLeftovers({ ...context, log }, Date.now() + HOUR)) {
        if (kind !== "function file") continue;
        found.push(path);
        if (await remove()) found.push("removed");
      }
      return { found, skipped: skipped.sort() };
    } finally {
      await close();
    }
  }
  const { found, skipped } = await find();
  assert.deepEqual(skipped, damaged.toSorted());
  const removed = [`.functions/secrets/${ofSecret}`, "removed", ".functions/columns/of-gone", "removed"];
  assert.deepEqual(found, removed);
  // Without the damaged name, it is known that nothing has the version. Its source may be that of the damaged one.
  await rm(join(workshop.base, ".functions/names/c"));
  await put("sources/sha256-00", "source");
  assert.deepEqual((await find()).found, [`.functions/versions/${left}.1`, "removed"]);
  assert.equal(await readFile(join(workshop.base, ".functions/sources/sha256-00"), "utf8"), "source");
});

/** Opens the manifest with the engine. */
async function withManifest(
  t: TestContext,
  { base }: Workshop,
  work: (table: NativeTable) => Promise<void>,
): Promise<void> {
  const engine = createEngine({ log: silent });
  t.onTestFinished(() => engine.close());
  const { table, release } = await engine.acquire(join(base, "__manifest"));
  try {
    await table.checkoutLatest();
    await work(table);
  } finally {
    release();
  }
}

async function declareSome({ client }: Workshop, prefix: string, count = 5): Promise<void> {
  for (let i = 0; i < count; i++) await client.call("declareTable", `${prefix}${i}`);
}

/** Returns all files of the manifest, except for the hint that the engine may still be writing: `NAME#NUMBER`. */
const filesOf = async ({ base }: Workshop) =>
  (await readdir(join(base, "__manifest"), { recursive: true })).filter((name) => !name.includes("#")).sort();

test("files of the manifest that no version has are found, those of every version stay", async (t) => {
  const workshop = await openWorkshop(t);
  await declareSome(workshop, "a");
  for (let i = 0; i < 3; i++) await workshop.client.call("dropTable", `a${i}`);
  const before = await filesOf(workshop);
  const left = [
    "__manifest/_deletions/0-3-1234567890.arrow",
    `__manifest/_indices/${INDEX}/page_data.lance`,
    "__manifest/_transactions/3-0a1b2c3d-0000-4000-8000-000000000000.txn",
    "__manifest/data/cut-off.lance",
  ];
  for (const path of left) await putFile(workshop, path);
  const found = left.map((path) => `manifest file: ${path.replace("/page_data.lance", "")}`);
  const hourAgo = Date.now() - 3_600_000;
  assert.deepEqual(await collect(workshop, hourAgo, everything), [], "they may be of a commit that goes on");
  assert.deepEqual(await collect(workshop, undefined, everything), found);
  assert.deepEqual(
    (await filesOf(workshop)).filter((name) => name !== "_indices" && name !== "_deletions"),
    before.filter((name) => name !== "_deletions"),
  );
  await declareSome(workshop, "b");
});

test("indices of the manifest that are in use stay, those that were replaced go", async (t) => {
  const workshop = await openWorkshop(t);
  await declareSome(workshop, "a");
  const indexes = async () => (await readdir(join(workshop.base, "__manifest", "_indices"))).length;
  const build = () =>
    withManifest(t, workshop, async (table) => {
      const btree = loadNative().Index.btree();
      await (await table.createIndexAsync(btree, "object_id", true, undefined, undefined, true)).wait();
    });
  await build();
  await declareSome(workshop, "b");
  await build();
  assert.equal(await indexes(), 2);
  assert.deepEqual(await collect(workshop, undefined, everything), [], "an older version has the first one");
  // As pruning leaves it: only the newest version exists.
  const versions = join(workshop.base, "__manifest", "_versions");
  const [, ...older] = (await readdir(versions)).filter((name) => name.endsWith(".manifest")).sort();
  for (const name of older) await rm(join(versions, name));
  const found = await collect(workshop, undefined, everything);
  assert.equal(found.filter((path) => path.includes("/_indices/")).length, 1);
  assert.equal(await indexes(), 1);
  await declareSome(workshop, "c");
  assert.equal((await workshop.client.call("listTables", "")).tables.length, 15);
});

test("nothing of the manifest is found beside tags, or where a version cannot be read", async (t) => {
  const workshop = await openWorkshop(t);
  await declareSome(workshop, "a");
  await putFile(workshop, "__manifest/data/cut-off.lance");
  const damaged = join(workshop.base, "__manifest", "_versions", `${2n ** 64n - 1n - 2n}.manifest`);
  const bytes = await readFile(damaged);
  await writeFile(damaged, "");
  assert.deepEqual(await collect(workshop, undefined, everything), []);
  await writeFile(damaged, bytes);
  const tags = join(workshop.base, "__manifest", "_refs", "tags");
  await mkdir(tags, { recursive: true });
  await writeFile(join(tags, "kept.json"), "{}");
  assert.deepEqual(await collect(workshop, undefined, everything), []);
  await rm(tags, { recursive: true });
  assert.deepEqual(await collect(workshop), ["manifest file: __manifest/data/cut-off.lance"]);
});
