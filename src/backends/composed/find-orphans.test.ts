import assert from "node:assert/strict";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it, type TestContext, vi } from "vitest";
import { temporaryDirectory } from "../../../test/support/directory.ts";
import { findOrphans } from "./find-orphans.ts";

const MINUTE = 60_000;

/** Makes files in a directory of tables, each with its path or other contents, and returns what is found there. */
async function find(
  t: TestContext,
  paths: readonly string[],
  listed: readonly string[],
  olderThan: number,
  removes = false,
  contents: Readonly<Record<string, string>> = {},
) {
  const { path: root, remove } = await temporaryDirectory();
  t.onTestFinished(remove);
  for (const path of paths) {
    await mkdir(join(root, path, ".."), { recursive: true });
    await writeFile(join(root, path), contents[path] ?? path);
  }
  const orphans = findOrphans({
    places: [root],
    storageOptionsOf: () => ({}),
    async *locations() {
      for (const name of listed) yield join(root, name);
    },
    ...{ olderThan, removes },
  });
  const found: Record<string, string> = {};
  for await (const { kind, path, remove: removeIt } of orphans) {
    found[path.slice(root.length + 1)] = kind;
    if (kind === "unlisted data") assert.equal(await removeIt(), false);
  }
  assert.deepEqual(
    (await readdir(root)).sort(),
    [...new Set(paths.map((path) => path.split("/")[0]))].sort(),
  );
  return found;
}

const ID = "0a1b".repeat(8);

const PATHS = [
  "n/listed.lance/_versions/1.manifest",
  "n/listed.lance/data/a.lance",
  `n/listed.lance/.staging-${ID}/data/a.lance`,
  `n/listed.lance/.staging-upload-${ID}/data/a.lance`,
  "n/dropped.lance/_versions/1.manifest",
  "n/dropped.lance/data/a.lance",
  "n/killed.lance/data/a.lance",
  `n/killed.lance/.staging-${ID}/data/a.lance`,
  "n/iceberg/data/a.parquet",
  "n/notes/readme.txt",
  // Another program's.
  "n/.staging-2024/pages/index.html",
  "n/listed.lance/.staging-0a/pages/index.html",
  ".probe-0a/index.html",
];

describe("the search for what crashes left beside a catalog's tables", () => {
  it("finds staged rows, and tables that the catalog does not have", async (t) => {
    assert.deepEqual(await find(t, PATHS, ["n/listed.lance"], -MINUTE), {
      [`n/listed.lance/.staging-${ID}`]: "staged data",
      [`n/listed.lance/.staging-upload-${ID}`]: "upload",
      "n/dropped.lance": "unlisted data",
      [`n/killed.lance/.staging-${ID}`]: "staged data",
      "n/killed.lance": "unfinished table",
    });
  });

  it("finds files of jobs that are not open any more, in the directories of tables", async (t) => {
    const id = "11111111-2222-3333-4444-555555555555";
    const open = "99999999-2222-3333-4444-555555555555";
    const base = "n/listed.lance/.lance-gateway";
    const paths = [
      "n/listed.lance/data/a.lance",
      `${base}/.jobs/done/${id}.json`,
      `${base}/.jobs/claims/${id}.2`,
      `${base}/.jobs/open/${open}.json`,
      `${base}/.jobs/claims/${open}.2`,
      `${base}/.probe-0a1b0a1b0a1b0a1b`,
    ];
    assert.deepEqual(await find(t, paths, ["n/listed.lance"], -MINUTE), {
      [`${base}/.jobs/claims/${id}.2`]: "job file",
      [`${base}/.probe-0a1b0a1b0a1b0a1b`]: "probe",
    });
    // A table that the catalog dropped is recognized, although it had jobs.
    assert.equal((await find(t, paths, [], -MINUTE))["n/listed.lance"], "unfinished table");
  });

  it("finds notes of work whose process has died, in the directories of tables", async (t) => {
    const note = `n/listed.lance/.lance-gateway/.work/${ID}-11111111-2222-3333-4444-555555555555`;
    const paths = ["n/listed.lance/data/a.lance", note, `${note}.alive`];
    assert.deepEqual(await find(t, paths, ["n/listed.lance"], -MINUTE), { [note]: "work note" });
  });

  it("finds staged manifests of commits that can have no version any more, on branches too", async (t) => {
    const staged = "11111111-2222-3333-4444-555555555555";
    const versions = [
      "n/listed.lance/_versions",
      "n/listed.lance/tree/a/_versions",
      "n/listed.lance/tree/a/b/_versions",
    ];
    const paths = versions.flatMap((directory) => [
      `${directory}/1.manifest`,
      `${directory}/2.manifest`,
      `${directory}/2.manifest-${staged}`,
      // A catalog may have committed it.
      `${directory}/3.manifest-${staged}`,
    ]);
    assert.deepEqual(
      await find(t, paths, ["n/listed.lance"], -MINUTE),
      Object.fromEntries(versions.map((directory) => [`${directory}/2.manifest-${staged}`, "table file"])),
    );
  });

  it("finds no staged manifests that may be those of versions, where the catalog leaves them", async (t) => {
    const staged = "11111111-2222-3333-4444-555555555555";
    const directory = "n/listed.lance/_versions";
    const paths = [
      `${directory}/1.manifest-${staged}`,
      `${directory}/2.manifest`,
      `${directory}/2.manifest-${staged}`,
      `${directory}/3.manifest`,
      `${directory}/3.manifest-${staged}`,
    ];
    const contents = { [`${directory}/2.manifest`]: `${directory}/2.manifest-${staged}` };
    assert.deepEqual(await find(t, paths, ["n/listed.lance"], -MINUTE, true, contents), {
      [`${directory}/3.manifest-${staged}`]: "table file",
    });
  });

  it("finds nothing that was written since", async (t) => {
    assert.deepEqual(await find(t, PATHS, [], MINUTE), {});
  });

  it("finds nothing to remove that was written since, though the clock of the machine is ahead", async (t) => {
    const time = Date.now() + 60 * MINUTE;
    vi.spyOn(Date, "now").mockReturnValue(time);
    t.onTestFinished(() => void vi.restoreAllMocks());
    assert.deepEqual(await find(t, PATHS, [], 30 * MINUTE, true), {});
  });

  it("finds the probes that asked the storage for the time", async (t) => {
    const paths = [".probe-0a1b0a1b0a1b0a1b", ".probe-of-another", "n/.probe-0a1b0a1b0a1b0a1b"];
    assert.deepEqual(await find(t, paths, [], -MINUTE, true), { ".probe-0a1b0a1b0a1b0a1b": "probe" });
  });
});
