import assert from "node:assert/strict";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, it } from "vitest";
import { commitMetadata } from "../../src/backends/dir/format/changes/commit.ts";
import type { DatasetRef } from "../../src/backends/dir/format/dataset.ts";
import { countRows, metadataText } from "../../src/backends/dir/format/files/manifest.ts";
import { createLocalStore } from "../../src/backends/dir/format/local/local-store.ts";
import { deleteVersions } from "../../src/backends/dir/format/versions/delete-versions.ts";
import {
  createTag,
  deleteTag,
  listBranches,
  listTags,
  openBranch,
  updateTag,
} from "../../src/backends/dir/format/versions/refs/refs.ts";
import { findTransaction } from "../../src/backends/dir/format/versions/transaction-records.ts";
import { listVersions, readVersion } from "../../src/backends/dir/format/versions/version-files.ts";
import { runPython } from "./support/python.ts";

/** A dataset as pylance reads it; see format_peer.py. */
interface Reading {
  readonly version: number;
  readonly versions: readonly number[];
  readonly rows: number;
  readonly scanned: number;
  readonly fragments: number;
  readonly config: Readonly<Record<string, string>>;
  readonly tableMetadata: Readonly<Record<string, string>>;
  readonly schemaMetadata: Readonly<Record<string, string>>;
  readonly fieldMetadata: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly indices: readonly string[];
  readonly tags: Readonly<Record<string, readonly [branch: string | null, version: number]>>;
  readonly branches: Readonly<Record<string, readonly [string | null, number, number, number]>>;
  readonly transactions: Readonly<
    Record<
      string,
      {
        readonly uuid: string;
        readonly readVersion: number;
        readonly properties: Readonly<Record<string, string>>;
      }
    >
  >;
}

async function peer(command: string, ...args: readonly string[]): Promise<Reading> {
  return JSON.parse(await runPython("format_peer.py", command, ...args)) as Reading;
}

/** Reads a dataset with both, and lets both say the same. */
async function compare(dataset: DatasetRef): Promise<Reading> {
  const theirs = await peer(
    "read",
    `/${dataset.root}`,
    ...(dataset.branch === undefined ? [] : [dataset.branch]),
  );
  const { manifest } = await readVersion(dataset);
  const [versions, tags, branches] = await Promise.all([
    listVersions(dataset),
    listTags(dataset),
    listBranches(dataset),
  ]);
  assert.deepEqual(
    {
      version: Number(manifest.version),
      versions: versions.map(({ version }) => Number(version)),
      rows: Number(countRows(manifest).rows),
      scanned: Number(countRows(manifest).rows),
      fragments: countRows(manifest).fragments,
      config: manifest.config,
      tableMetadata: manifest.tableMetadata,
      schemaMetadata: metadataText(manifest.schemaMetadata),
      fieldMetadata: Object.fromEntries(
        manifest.fields
          .filter(({ parentId }) => parentId === -1)
          .map(({ name, metadata }) => [name, metadataText(metadata)]),
      ),
      // These are the engine's to read, or are looked at below.
      indices: theirs.indices,
      transactions: theirs.transactions,
      tags: Object.fromEntries(
        [...tags].map(([name, tag]) => [name, [tag.branch ?? null, Number(tag.version)]]),
      ),
      branches: Object.fromEntries(
        [...branches].map(([name, { parentBranch, parentVersion, createAt, manifestSize }]) => [
          name,
          [parentBranch ?? null, Number(parentVersion), createAt, manifestSize],
        ]),
      ),
    },
    theirs,
  );
  for (const [version, { uuid, readVersion: base, properties }] of Object.entries(theirs.transactions)) {
    const ours = await findTransaction(dataset, version);
    assert.deepEqual([ours.uuid, Number(ours.readVersion), ours.properties], [uuid, base, properties]);
  }
  return theirs;
}

describe("the format beside pylance", () => {
  const directory = mkdtempSync(join(tmpdir(), "format-peer-"));
  const store = createLocalStore();
  const at = (name: string): DatasetRef => ({ store, root: join(directory, name).slice(1) });
  /** A copy of a dataset, to write to. */
  function copy(name: string): DatasetRef {
    const target = `${name}-${Math.random().toString(36).slice(2)}`;
    cpSync(join(directory, name), join(directory, target), { recursive: true });
    return at(target);
  }
  beforeAll(() => runPython("format_peer.py", "make", directory));
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  for (const name of ["new", "old", "stable", "v1file"]) {
    it(`reads the dataset "${name}" and commits metadata that pylance reads`, async () => {
      const dataset = at(name);
      await compare(dataset);
      const column = name === "v1file" ? "word" : "id";
      const change = {
        config: { entries: { ours: "1", owner: null } },
        tableMetadata: { entries: { t: "\u00fc" } },
        schemaMetadata: { entries: { s: "2" }, replace: true },
        fieldMetadata: { [column]: { entries: { f: "3" } } },
      };
      await commitMetadata(dataset, change, { properties: { by: "us" } });
      const now = await compare(dataset);
      assert.deepEqual([now.config["ours"], now.config["owner"]], ["1", undefined]);
      assert.deepEqual(now.schemaMetadata, { s: "2" });
      assert.equal(now.fieldMetadata[column]?.["f"], "3");
      assert.deepEqual(now.transactions[now.version]?.properties, { by: "us" });
      assert.deepEqual(now.indices, name === "new" ? ["name_idx"] : []);
    });
  }

  it("commits to a branch, and tags what pylance finds", async () => {
    const main = at("new");
    const branch = await openBranch(main, "feature/a");
    await commitMetadata(branch, { config: { entries: { "on-branch": "1" } } });
    assert.equal((await compare(branch)).config["on-branch"], "1");
    await createTag(main, "ours", { version: 2n });
    await createTag(main, "ours-on-branch", { version: 5n, branch: "feature/a" });
    await updateTag(main, "ours", { version: 3n });
    await deleteTag(main, "first");
    const { tags, config } = await compare(main);
    assert.deepEqual(
      [tags["ours"], tags["ours-on-branch"]],
      [
        [null, 3],
        ["feature/a", 5],
      ],
    );
    assert.equal(config["on-branch"], undefined);
  });

  it("leaves datasets that every kind of write goes on with", async () => {
    const written = ["new", "stable"].map(async (name) => {
      const dataset = copy(name);
      await commitMetadata(dataset, { schemaMetadata: { entries: { a: "b" } } });
      await peer("write", `/${dataset.root}`);
      await commitMetadata(dataset, { schemaMetadata: { entries: { c: "d" } } });
      const { schemaMetadata: metadata } = await compare(dataset);
      assert.deepEqual([metadata["a"], metadata["c"], metadata["after"]], ["b", "d", "ours"]);
    });
    await Promise.all(written);
  });

  it("loses no commit beside a process that appends", async () => {
    const dataset = copy("new");
    const before = await peer("read", `/${dataset.root}`);
    let appending = true;
    const appended = peer("append", `/${dataset.root}`, "30").finally(() => {
      appending = false;
    });
    let commits = 0;
    for (; appending; commits += 1) {
      await commitMetadata(dataset, { schemaMetadata: { entries: { last: String(commits) } } });
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await appended;
    const end = await compare(dataset);
    assert.equal(end.rows, before.rows + 30);
    assert.equal(end.schemaMetadata["last"], String(commits - 1));
    assert.equal(end.version, before.version + commits + 30);
    assert.deepEqual(
      end.versions,
      Array.from({ length: end.version }, (_, i) => i + 1),
    );
  });

  it("deletes versions that nobody looks for afterwards", async () => {
    const dataset = copy("old");
    await deleteVersions(dataset, [{ start: 1n, end: 2n }]);
    await peer("append", `/${dataset.root}`, "2");
    await compare(dataset);
  });
});
