import assert from "node:assert/strict";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "vitest";
import { silent } from "../../../../test/fixtures/dir/directory-backend.ts";
import { collect, openWorkshop, putFile, type Workshop } from "../../../../test/fixtures/dir/maintenance.ts";
import { createEngine } from "../engine/engine.ts";
import { loadNative } from "../engine/native/load.ts";
import type { NativeTable } from "../engine/native/native.ts";

const everything = () => true;
const INDEX = "11111111-2222-3333-4444-555555555555";

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
