import assert from "node:assert/strict";
import { describe, it } from "vitest";
import type { ObjectStore } from "../storage.ts";
import type { CatalogVersion, StagedManifest, VersionCatalog } from "../version-catalog.ts";
import { withVersionCatalog } from "./catalog-store.ts";
import { findVersions } from "./version-files.ts";

const ROOT = "a/t.lance";
const STAGED = "11111111-2222-3333-4444-555555555555";

/** Returns the names and the bytes of the versions of a catalog that has manifests with some names, which are also their bytes. */
async function listed(names: Readonly<Record<number, string>>) {
  const all = Object.entries(names).map(([version, name]): CatalogVersion => {
    return { version: BigInt(version), key: `${ROOT}/_versions/${name}` };
  });
  const catalog = {
    root: ROOT,
    async *list() {
      yield all.toReversed();
    },
  } as unknown as VersionCatalog;
  const objects = new Map(all.map(({ key }) => [key, Buffer.from(key.slice(key.lastIndexOf("/") + 1))]));
  const store = { get: async (key: string) => objects.get(key) } as unknown as ObjectStore;
  const dataset = { store: withVersionCatalog(store, catalog), root: ROOT };
  const found = await findVersions(dataset);
  return Promise.all(
    found.map(async ({ version, name, key }) => [version, name, String(await dataset.store.get(key))]),
  );
}

describe("a store whose versions a catalog commits", () => {
  it("lists staged manifests by the names of their versions, in the scheme of the table", async () => {
    assert.deepEqual(await listed({ 1: "1.manifest", 2: `2.manifest-${STAGED}` }), [
      [2n, "2.manifest", `2.manifest-${STAGED}`],
      [1n, "1.manifest", "1.manifest"],
    ]);
    const [one, two] = ["18446744073709551614.manifest", "18446744073709551613.manifest"];
    assert.deepEqual(await listed({ 1: `${one}-${STAGED}`, 2: two }), [
      [2n, two, two],
      [1n, one, `${one}-${STAGED}`],
    ]);
    assert.deepEqual(await listed({ 1: one, 2: "named.manifest" }), [
      [2n, two, "named.manifest"],
      [1n, one, one],
    ]);
  });

  it("overwrites no manifest of another table in the place, and reads its own", async () => {
    const name = `${ROOT}/_versions/1.manifest`;
    const objects = new Map<string, Buffer>([[name, Buffer.from("another table's")]]);
    let committed: CatalogVersion | undefined;
    const catalog = {
      root: ROOT,
      async commit(_: unknown, { version, key }: StagedManifest) {
        committed = { version, key };
        return committed;
      },
    } as unknown as VersionCatalog;
    const storage = {
      get: async (key: string) => objects.get(key),
      put: async (key: string, bytes: Buffer) => void objects.set(key, bytes),
      async putIfAbsent(key: string, bytes: Buffer) {
        if (objects.has(key)) return false;
        objects.set(key, bytes);
        return true;
      },
    } as unknown as ObjectStore;
    const store = withVersionCatalog(storage, catalog);
    for (const text of ["first", "of a table that was made anew"]) {
      assert.equal(await store.putIfAbsent(name, Buffer.from(text)), true);
      assert.equal(String(objects.get(name)), "another table's");
      assert.equal(String(await store.get(name)), text);
      assert.equal(String(objects.get(committed?.key ?? "")), text);
    }
    objects.delete(name);
    assert.equal(await store.putIfAbsent(name, Buffer.from("third")), true);
    assert.deepEqual([String(objects.get(name)), String(await store.get(name))], ["third", "third"]);
  });
});
