import assert from "node:assert/strict";
import { type TestContext, test } from "vitest";
import { openBaseDirectory, table } from "../../../../../test/fixtures/catalog/catalog.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { createLocalStore } from "../../format/local/local-store.ts";
import type { Catalog } from "../catalog.ts";
import type { ManifestTable } from "../manifest/manifest-table.ts";
import type { Row } from "../state/row.ts";
import { createState } from "../state/state.ts";

async function createWorld(t: TestContext) {
  const { location, engine, manifestTable, open } = await openBaseDirectory(t);
  return {
    location,
    engine,
    open(
      change: (manifest: ManifestTable) => Partial<ManifestTable> = () => ({}),
      store = createLocalStore(),
    ) {
      const manifest = manifestTable(store);
      return open({ ...manifest, ...change(manifest) });
    },
  };
}

const put = (catalog: Catalog, ...rows: Row[]) =>
  catalog.mutate((draft) => {
    for (const row of rows) draft.put(row);
  });
const remove = (catalog: Catalog, id: string) => catalog.mutate((draft) => draft.delete(id));
const rename = (catalog: Catalog, from: string, to: string) =>
  catalog.mutate((draft) => {
    const row = draft.get(from);
    if (row === undefined) throw new LanceError("TableNotFound", from);
    draft.delete(from);
    draft.put({ ...row, objectId: to });
  });

/** Returns the outcomes of concurrent calls, which form a group: the name of the error, or `ok`. */
async function outcomesOf(calls: readonly Promise<unknown>[]): Promise<string[]> {
  const results = await Promise.allSettled(calls);
  return results.map((result) =>
    result.status === "fulfilled" ? "ok" : (result.reason as LanceError).entry.name,
  );
}

test("fails only the change that would lose the values of another program, whatever else is in its group", async (t) => {
  const world = await createWorld(t);
  const catalog = world.open();
  for (const name of ["foreign", "other", "plain"]) await put(catalog, table(name));
  const lease = await world.engine.acquire(world.location);
  try {
    await lease.table.addColumns([{ name: "extra", valueSql: "nullif(object_id, 'plain')" }]);
  } finally {
    lease.release();
  }
  let commits = 0;
  const counted = world.open((manifest) => ({
    prepare(...args) {
      commits++;
      return manifest.prepare(...args);
    },
  }));
  const outcomes = await outcomesOf([
    put(counted, table("a")),
    rename(counted, "foreign", "renamed"),
    put(counted, table("b")),
    // If the rename is refused, the name is still taken, and this change would lose values, too.
    put(counted, table("foreign", { changed: "yes" })),
    rename(counted, "plain", "plainer"),
    rename(counted, "renamed", "again"),
    remove(counted, "other"),
    put(counted, table("other", { made: "anew" })),
  ]);
  const expected = ["ok", "Unsupported", "ok", "Unsupported", "ok", "TableNotFound", "ok", "ok"];
  assert.deepEqual(outcomes, expected);
  assert.equal(commits, 1, "the group is one commit");
  const state = await world.open().read();
  const there = ["a", "b", "foreign", "other", "plain", "plainer", "renamed"];
  assert.deepEqual(
    there.filter((id) => state.get(id) !== undefined),
    ["a", "b", "foreign", "other", "plainer"],
  );
  assert.deepEqual(state.get("foreign")?.properties, {});
  assert.deepEqual(state.get("other")?.properties, { made: "anew" });
});

test("halves a group that cannot be written until only the caller at fault fails", async (t) => {
  const world = await createWorld(t);
  await put(world.open(), table("old"));
  const disk = createLocalStore();
  const sizes: number[] = [];
  // A disk without room for the rows of a single caller.
  const create = async (key: string, bytes: Uint8Array) => {
    if (key.includes("/data/")) sizes.push(bytes.byteLength);
    if (Buffer.from(bytes).includes("TOO LARGE")) throw new LanceError("ServiceUnavailable", "full");
    await disk.create(key, bytes);
  };
  const catalog = world.open(undefined, { ...disk, create });
  const rows = Array.from({ length: 32 }, (_, i) => table(`t${i}`, i === 21 ? { text: "TOO LARGE" } : {}));
  const outcomes = await outcomesOf(rows.map((row) => put(catalog, row)));
  assert.deepEqual(
    outcomes,
    rows.map((_, i) => (i === 21 ? "ServiceUnavailable" : "ok")),
  );
  assert.ok(sizes.length <= 1 + 2 * Math.log2(32), `${sizes.length} writes`);
  assert.equal((await world.open().read()).size, 1 + 31);
});

test("commits none of the rows of a change that throws halfway", async (t) => {
  const world = await createWorld(t);
  const catalog = world.open();
  const outcomes = await outcomesOf([
    put(catalog, table("a")),
    catalog.mutate((draft) => {
      draft.put(table("half"));
      draft.delete("a");
      throw new LanceError("InvalidInput", "no");
    }),
    rename(catalog, "a", "b"),
  ]);
  assert.deepEqual(outcomes, ["ok", "InvalidInput", "ok"]);
  const state = await world.open().read();
  assert.deepEqual([state.size, state.get("half"), state.get("b")?.location], [1, undefined, "a.lance"]);
});

test("does not silently drop a row whose place is unknown", async (t) => {
  const world = await createWorld(t);
  await put(world.open(), table("a"), table("b"), table("c"));
  const bare = () => Promise.resolve(createState(["a", "b", "c"].map((id) => table(id))));
  const isUnknown = (error: unknown) => error instanceof Error && /no known address/.test(error.message);

  const broken = world.open(() => ({ read: bare }));
  await assert.rejects(remove(broken, "b"), isUnknown);
  await assert.rejects(put(broken, table("b", { changed: "yes" })), isUnknown);
  assert.equal((await world.open().read()).size, 3, "nothing was committed");

  let reads = 0;
  const healing = world.open((manifest) => ({
    read: (version) => (reads++ === 0 ? bare() : manifest.read(version)),
  }));
  await remove(healing, "b");
  const state = await world.open().read();
  assert.deepEqual([state.size, state.get("b"), reads], [2, undefined, 2]);
});

test("does not rewrite a fragment without its unknown rows", async (t) => {
  const world = await createWorld(t);
  await put(world.open(), table("a"), table("b"), table("c"));
  // The state has the row of `b` with its address, but does not know `a`.
  const partial = world.open((manifest) => ({
    async read(version) {
      const state = await manifest.read(version);
      state.apply(new Map([["a", undefined]]));
      return state;
    },
  }));
  await assert.rejects(remove(partial, "b"), /has 3 rows, of which 2 are known/);
  const state = await world.open().read();
  assert.equal(state.size, 3);
});
