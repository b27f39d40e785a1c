import assert from "node:assert/strict";
import { mkdir, readdir, rename, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { test } from "vitest";
import { silent, temporaryDirectory } from "../../../../test/fixtures/dir/directory-backend.ts";
import { storeIn } from "../../../../test/fixtures/dir/jobs.ts";
import {
  collect,
  openWorkshop,
  putFile,
  ROWS,
  type Workshop,
} from "../../../../test/fixtures/dir/maintenance.ts";
import { BasePathSchema } from "../../../gen/lance/format/table_pb.ts";
import { InsertMode } from "../../../gen/lance/namespace/v1/data_pb.ts";
import { manifestKey } from "../format/dataset.ts";
import { copyMessage } from "../format/files/manifest.ts";
import { buildManifestFile } from "../format/files/manifest-file.ts";
import { createLocalStore } from "../format/local/local-store.ts";
import { readVersion } from "../format/versions/version-files.ts";
import type { Job } from "../jobs/job.ts";
import { openDirectory } from "../open-directory.ts";

const everything = () => true;
const INDEX = "11111111-2222-3333-4444-555555555555";
const DATA = "0101010101010101010101011111111111111111111111111a";

/** Files that failed work on a cluster, and commits that did not happen, leave in a table. */
const LEFT = [
  "_deletions/.tmpq2W3e4",
  "_deletions/0-3-1234567890.arrow",
  `_indices/${INDEX}/page_data.lance`,
  "_transactions/3-0a1b2c3d-0000-4000-8000-000000000000.txn",
  "_versions/18446744073709551600.manifest-0a1b2c3d-0000-4000-8000-000000000000",
  "data/.tmpxfVIBL",
  `data/${DATA}/1.blob`,
  `data/${DATA}.lance`,
];

/** Files of others, and those of which gc is not sure. */
const KEPT = ["data/holiday.jpg", "data/photos/b.png", "_indices/notes/a.txt", "_versions/notes.txt"];

const found = (directory: string) =>
  LEFT.map(
    (path) => `table file: ${directory}/${path.replace(/\/(?:page_data\.lance|1\.blob)$/, "")}`,
  ).sort();

async function makeTable({ client }: Workshop, id: string): Promise<void> {
  await client.upload("createTable", id, {}, ROWS);
  await client.call("createTableIndex", id, { column: "id", indexType: "BTREE" });
  await client.upload("insertIntoTable", id, {}, ROWS);
  await client.call("deleteFromTable", id, { predicate: "id = 2" });
}

/** Has the oldest version of a table name another directory. */
async function addBasePath({ base }: Workshop, name: string, path: string): Promise<void> {
  const dataset = { store: createLocalStore(), root: join(base, `${name}.lance`).slice(1) };
  const { manifest, signature } = await readVersion(dataset, 1n);
  const changed = Object.assign(copyMessage(manifest), { transactionSection: 0n });
  changed.basePaths.push(create(BasePathSchema, { id: changed.basePaths.length, isDatasetRoot: true, path }));
  const bytes = buildManifestFile(new Uint8Array(), new Uint8Array(), changed, signature);
  await dataset.store.put(manifestKey(dataset, 1n, "V2"), bytes);
}

const filesIn = async ({ base }: Workshop, directory: string) =>
  (await readdir(join(base, directory), { recursive: true })).filter((name) => !name.includes("#")).sort();

test("files of a table that no version has are found, those of every version and of others stay", async (t) => {
  const workshop = await openWorkshop(t);
  await makeTable(workshop, "t");
  for (const path of KEPT) await putFile(workshop, `t.lance/${path}`);
  const before = await filesIn(workshop, "t.lance");
  for (const path of LEFT) await putFile(workshop, `t.lance/${path}`);
  assert.deepEqual(
    await collect(workshop, Date.now() - 3_600_000, everything),
    [],
    "a commit may have them yet",
  );
  assert.deepEqual(await collect(workshop), found("t.lance"), "a first look only tells");
  assert.deepEqual(await collect(workshop, undefined, everything), found("t.lance"));
  assert.deepEqual(await filesIn(workshop, "t.lance"), before);
  assert.equal((await workshop.client.call("countTableRows", "t")).count, 4n);
});

test("a table of the root without a row is searched, and one in a namespace", async (t) => {
  const workshop = await openWorkshop(t);
  await workshop.client.call("createNamespace", "ns");
  await makeTable(workshop, "ns$t");
  const [directory = ""] = (await readdir(workshop.base)).filter((name) => name.endsWith("_ns$t"));
  for (const path of LEFT) await putFile(workshop, `${directory}/${path}`);
  assert.deepEqual(await collect(workshop, undefined, everything), found(directory));
});

test("nothing in a table is found beside tags, or where a version cannot be read", async (t) => {
  const workshop = await openWorkshop(t);
  await makeTable(workshop, "t");
  await makeTable(workshop, "tagged");
  await workshop.client.call("createTableTag", "tagged", { tag: "kept", version: 1n });
  for (const path of LEFT) {
    await putFile(workshop, `t.lance/${path}`);
    await putFile(workshop, `tagged.lance/${path}`);
  }
  const damaged = join(workshop.base, "t.lance", "_versions", `${2n ** 64n - 1n - 1n}.manifest`);
  await writeFile(damaged, "");
  assert.deepEqual(await collect(workshop, undefined, everything), []);
});

test("a table on which a process works for long is passed over", async (t) => {
  const workshop = await openWorkshop(t);
  await makeTable(workshop, "t");
  for (const path of LEFT) await putFile(workshop, `t.lance/${path}`);
  const { context, close } = await openDirectory({ root: workshop.root, log: silent });
  t.onTestFinished(close);
  const end = await context.work.begin("t.lance");
  assert.deepEqual(await collect(workshop), []);
  await end();
  assert.deepEqual(await collect(workshop), found("t.lance"));
});

test("the files of a table to which another one refers stay, those of others are found", async (t) => {
  const workshop = await openWorkshop(t);
  const { base, client } = workshop;
  await client.call("createNamespace", "ns");
  for (const id of ["t", "other", "ns$t", "clone"]) await makeTable(workshop, id);
  const [inNamespace = ""] = (await readdir(base)).filter((name) => name.endsWith("_ns$t"));
  for (const directory of ["t.lance", "other.lance", inNamespace])
    for (const path of LEFT) await putFile(workshop, `${directory}/${path}`);
  // As the library's shallow clones do, of versions that are gone by now.
  await addBasePath(workshop, "clone", `file://${join(base, encodeURIComponent(inNamespace))}`);
  await addBasePath(workshop, "clone", `${join(base, "t.lance")}/tree/b/`);
  // The newest version does without them.
  await client.upload("insertIntoTable", "clone", { mode: InsertMode.OVERWRITE }, ROWS);
  assert.deepEqual(await collect(workshop, undefined, everything), found("other.lance"));
});

test("a directory without a version stays in which a table keeps files", async (t) => {
  const workshop = await openWorkshop(t);
  await makeTable(workshop, "t");
  for (const directory of ["more", "left"]) await putFile(workshop, `${directory}/data/${DATA}.lance`);
  await addBasePath(workshop, "t", join(workshop.base, "more"));
  assert.deepEqual(await collect(workshop, undefined, everything), ["unfinished table: left"]);
});

test("a table with an open job of a cluster is passed over, since its driver may commit later", async (t) => {
  const workshop = await openWorkshop(t);
  await makeTable(workshop, "t");
  for (const path of LEFT) await putFile(workshop, `t.lance/${path}`);
  const { context, close } = await openDirectory({ root: workshop.root, log: silent });
  t.onTestFinished(close);
  const spec = { location: "t.lance", engine: "ray" };
  const { id } = await context.jobs.leave({ kind: "optimize_table", table: ["t"], spec });
  assert.deepEqual(await collect(workshop), []);
  const job = await context.jobs.get(id);
  await storeIn(workshop.base).finish({ ...(job as Job), state: "failed", finishedAt: Date.now() });
  assert.deepEqual(await collect(workshop), found("t.lance"));
});

test("files outside of the catalog stay, to which links and rows of other programs lead", async (t) => {
  const workshop = await openWorkshop(t);
  const { base, root } = workshop;
  const outside = join(await temporaryDirectory(t), "outside");
  for (const id of ["t", "linked", "data"]) await makeTable(workshop, id);
  for (const directory of ["t.lance", "linked.lance", "data.lance"])
    for (const path of LEFT) await putFile(workshop, `${directory}/${path}`);
  await mkdir(outside);
  for (const place of ["linked.lance", "data.lance/data"]) {
    const target = join(outside, place.replace("/", "-"));
    await rename(join(base, place), target);
    await symlink(target, join(base, place));
  }
  const { context, close } = await openDirectory({ root, log: silent, maintenance: false });
  t.onTestFinished(close);
  await context.catalog.mutate((draft) => {
    for (const [i, location] of ["../outside", "__manifest", "%2e%2e/x"].entries())
      draft.put({ objectId: `x${i}`, objectType: "table", location, properties: {} });
  });
  const before = (await readdir(outside, { recursive: true })).sort();
  const own = found("data.lance").filter((path) => !path.includes("/data/"));
  assert.deepEqual(await collect(workshop, undefined, everything), [...own, ...found("t.lance")].sort());
  assert.deepEqual((await readdir(outside, { recursive: true })).sort(), before);
});
