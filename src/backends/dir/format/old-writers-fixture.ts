/* Fixtures of the tests of tables of old releases. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Int64, Table, tableFromIPC, tableToIPC, Utf8, vectorFromArray } from "apache-arrow";
import type { TestContext } from "vitest";
import { openClient } from "../test-support.ts";
import { commitMetadata } from "./changes/commit.ts";
import { createVersion } from "./changes/staged-version.ts";
import { type DatasetRef, manifestKey, parseManifestName } from "./dataset.ts";
import { buildManifestFile } from "./files/manifest-file.ts";
import { createLocalStore } from "./local/local-store.ts";
import { pruneVersions } from "./versions/prune.ts";
import { findVersions, readVersion } from "./versions/version-files.ts";

/** The files of a table for each release, made by test/clients/python/old_writer.py. */
const releases = JSON.parse(
  readFileSync(join(import.meta.dirname, "testdata", "old-writers.json"), "utf8"),
) as Readonly<Record<string, Readonly<Record<string, string>>>>;

/** Releases of pylance whose tables are tested. */
export const OLD_RELEASES = Object.keys(releases);

/** Number of rows that the table has in the end. */
export const ROWS_AT_END = 4_004;

/** Encodes rows as an Arrow stream with batches of 500. */
function rows(...ids: number[]): Uint8Array {
  const batches: Table[] = [];
  for (let at = 0; at < ids.length; at += 500) {
    const some = ids.slice(at, at + 500);
    const id = vectorFromArray(some.map(BigInt), new Int64());
    const names = some.map((each) => `n${each}`);
    batches.push(new Table({ id, name: vectorFromArray(names, new Utf8()) }));
  }
  return tableToIPC(new Table(batches.flatMap((table) => table.batches)), "stream");
}

/**
 * Reads a table of an old release, appends to it, merges into it, commits to it in every way and prunes it.
 *
 * @param base an empty directory
 * @returns the path of the table
 */
export async function workOnOldTable(t: TestContext, base: string, release: string): Promise<string> {
  const path = join(base, "old.lance");
  for (const [name, data] of Object.entries(releases[release] ?? {})) {
    await mkdir(dirname(join(path, name)), { recursive: true });
    await writeFile(join(path, name), Buffer.from(data, "base64"));
  }
  const store = createLocalStore();
  const dataset: DatasetRef = { store, root: store.keyOf(path) };
  // The gateway, not the engine, stages and commits a body of several parts.
  const client = await openClient(t, base, { uploadPartBytes: 1024 });
  const read = async () => {
    const table = tableFromIPC(await client.query("old", { k: 100_000n }));
    const ids = [...(table.getChild("id") ?? [])].map(Number).sort((a, b) => a - b);
    return { count: ids.length, ids: ids.slice(0, 8) };
  };
  assert.deepEqual((await read()).ids, [0, 2]);

  const many = Array.from({ length: 2_000 }, (_, i) => 1_000 + i);
  await client.upload("insertIntoTable", "old", {}, rows(...many));
  await client.upload("insertIntoTable", "old", {}, rows(3));
  await client.upload("insertIntoTable", "old", {}, rows(...many.map((id) => id + 5_000)));
  assert.deepEqual(await read(), { count: 4_003, ids: [0, 2, 3, 1000, 1001, 1002, 1003, 1004] });

  await client.upload(
    "mergeInsertIntoTable",
    "old",
    { on: ["id"], whenMatchedUpdateAll: true, whenNotMatchedInsertAll: true },
    rows(2, 4),
  );
  await client.call("deleteFromTable", "old", { predicate: "id = 3" });
  assert.deepEqual((await read()).ids.slice(0, 4), [0, 2, 4, 1000]);

  await commitMetadata(dataset, { config: { entries: { ours: "yes" } } });
  const { manifest, key, signature } = await readVersion(dataset);
  const ids = manifest.fragments.map(({ id }) => id);
  assert.equal(new Set(ids).size, ids.length, `fragments ${ids}`);
  assert.equal(manifest.config["ours"], "yes");

  // A client of managed versioning stages these rows again.
  const next = { ...manifest, version: manifest.version + 1n, transactionFile: "" };
  for (const section of ["indexSection", "transactionSection"] as const) delete next[section];
  const { scheme } = parseManifestName(key.slice(key.lastIndexOf("/") + 1)) ?? {};
  const bytes = buildManifestFile(new Uint8Array(), new Uint8Array(), next, signature);
  const stagedKey = `${key}-staged`;
  await store.put(stagedKey, bytes);
  const made = await createVersion(dataset, { version: next.version, stagedKey });
  assert.equal(made.key, manifestKey(dataset, next.version, scheme ?? "V2"));
  assert.equal((await read()).count, 4_003);

  const { versions } = await pruneVersions(dataset, {
    keep: 2,
    minAgeMs: 0,
    mayGo: () => true,
    known: new Map(),
    clock: { now: async () => Date.now() + 60_000 },
    signal: new AbortController().signal,
  });
  assert.equal(versions, Number(next.version) - 2);
  assert.equal((await findVersions(dataset)).length, 2);
  assert.equal((await read()).count, 4_003);
  await client.upload("insertIntoTable", "old", {}, rows(9));
  assert.equal((await client.call("countTableRows", "old")).count, BigInt(ROWS_AT_END));
  return path;
}
