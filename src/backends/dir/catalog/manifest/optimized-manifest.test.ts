import assert from "node:assert/strict";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "vitest";
import { openBaseDirectory, table } from "../../../../../test/fixtures/catalog/catalog.ts";
import { silent } from "../../../../../test/fixtures/dir/directory-backend.ts";
import { engineWith } from "../../../../../test/fixtures/dir/engine.ts";
import { createWorkNotes, WORK_DIRECTORY } from "../../batch/work-notes.ts";
import { findVersions } from "../../format/versions/version-files.ts";
import { THIS_PROCESS } from "../../ownership/owner.ts";
import { createManifestTable, MANIFEST_NAME, type ManifestTable } from "./manifest-table.ts";

const { signal } = new AbortController();

/** Runs a chore of a manifest table. */
async function run(manifest: ManifestTable, name: string): Promise<void> {
  const current = async () => manifest.manifestOf((await manifest.head()).version);
  const chores = manifest.chores({ current, join: async () => false }, silent);
  await chores.find((chore) => chore.name === name)?.run(signal);
}

test("the manifest is not pruned while another process has the engine join its fragments, and drops stay dropped", async (t) => {
  const { base, dataset, engine, open } = await openBaseDirectory(t);
  const clock = { now: async () => Date.now() + 60_000 };
  const notes = createWorkNotes(dataset.store.keyOf(base), dataset.store, { now: async () => Date.now() });
  const other = open();
  const names = Array.from({ length: 12_000 }, (_, i) => `t${i}`);
  const drop = (some: readonly string[]) =>
    other.mutate((draft) => {
      for (const name of some) draft.delete(name);
    });
  await other.mutate((draft) => {
    for (const name of names) draft.put(table(name));
  });
  await drop(names.slice(0, 4_000));
  let left: number | undefined;
  const slow = engineWith(engine, "optimize", async () => {
    if (left !== undefined) return;
    const directory = join(base, WORK_DIRECTORY);
    const [own = ""] = await readdir(directory);
    const note = JSON.stringify({ ...THIS_PROCESS, process: "other", kernel: "of another machine" });
    await writeFile(join(directory, own), note);
    await drop(names.slice(4_000, 4_010));
    for (let i = 0; i < 25; i++) await other.mutate((draft) => draft.put(table(`u${i}`)));
    await run(createManifestTable(base, engine, dataset.store, clock), "prune");
    left = (await findVersions(dataset)).length;
  });
  const optimizing = run(createManifestTable(base, slow, dataset.store), "optimize");
  // The engine finds the drop, and tries again another time.
  await assert.rejects(optimizing);
  assert.equal(left, 3 + 1 + 25);
  assert.equal((await open().read()).size, 12_000 - 4_010 + 25);
  assert.equal(await notes.isAtWork(MANIFEST_NAME), false);
  await run(createManifestTable(base, engine, dataset.store, clock), "prune");
  assert.equal((await findVersions(dataset)).length, 20 + 2);
});
