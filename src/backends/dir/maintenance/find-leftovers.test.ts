import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { mkdir, readdir, readFile, utimes } from "node:fs/promises";
import { join } from "node:path";
import { test } from "vitest";
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
import { createLocalStore } from "../format/local/local-store.ts";
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
