import assert from "node:assert/strict";
import fc from "fast-check";
import { type TestContext, test } from "vitest";
import { table } from "../../../../../test/fixtures/catalog/catalog.ts";
import { silent, temporaryDirectory } from "../../../../../test/fixtures/dir/directory-backend.ts";
import { isLanceError } from "../../../../namespace/errors.ts";
import { createEngine, type Engine } from "../../engine/engine.ts";
import { commitMetadata } from "../../format/changes/commit.ts";
import { UnsyncedError } from "../../format/local/local-errors.ts";
import { createLocalStore } from "../../format/local/local-store.ts";
import { keyIn, type ObjectStore } from "../../format/storage.ts";
import { readVersion } from "../../format/versions/version-files.ts";
import { type Catalog, createCatalog } from "../catalog.ts";
import { createManifestTable, MANIFEST_NAME } from "../manifest/manifest-table.ts";
import type { Row } from "../state/row.ts";

interface World {
  readonly base: string;
  readonly engine: Engine;
  open(store?: ObjectStore): Catalog;
  /** Returns the rows as the engine reads them, by id. */
  rows(): Promise<Record<string, unknown>[]>;
}

async function createWorld(t: TestContext): Promise<World> {
  const base = await temporaryDirectory(t);
  const engine = createEngine({ log: silent });
  t.onTestFinished(() => engine.close());
  return {
    base,
    engine,
    open: (store = createLocalStore()) =>
      createCatalog(createManifestTable(base, engine, store), silent, { maintenance: false }),
    async rows() {
      const { tableFromIPC } = await import("apache-arrow");
      const lease = await engine.acquire(`${base}/${MANIFEST_NAME}`);
      try {
        await lease.table.checkoutLatest();
        const batches = await lease.table.query().execute();
        const rows: Record<string, unknown>[] = [];
        for (let batch = await batches.next(); batch !== null; batch = await batches.next())
          rows.push(
            ...tableFromIPC(batch)
              .toArray()
              .map((row) => row.toJSON()),
          );
        return rows.sort((a, b) => String(a["object_id"]).localeCompare(String(b["object_id"])));
      } finally {
        lease.release();
      }
    },
  };
}

const put = (catalog: Catalog, ...rows: Row[]) =>
  catalog.mutate((draft) => {
    for (const row of rows) draft.put(row);
  });

test("gives the engine and a newly opened catalog equal rows after any sequence of changes", async (t) => {
  const ids = Array.from({ length: 12 }, (_, i) => `t${i}`);
  const change = fc.record({
    id: fc.constantFrom(...ids),
    value: fc.option(fc.constantFrom("", "x", "é\u{1f600}", "long".repeat(2_000)), { nil: undefined }),
  });
  const group = fc.array(change, { minLength: 1, maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(fc.array(group, { minLength: 1, maxLength: 12 }), async (groups) => {
      const world = await createWorld(t);
      const catalog = world.open();
      const model = new Map<string, string>();
      for (const changes of groups) {
        await catalog.mutate((draft) => {
          for (const { id, value } of changes) {
            if (value === undefined) draft.delete(id);
            else draft.put(table(id, { value }));
          }
        });
        for (const { id, value } of changes) value === undefined ? model.delete(id) : model.set(id, value);
      }
      await put(catalog, table("last"));
      model.set("last", "");
      const expected = [...model].sort(([a], [b]) => a.localeCompare(b));
      const read = (await world.rows()).map((row) => [row["object_id"], row["metadata"]]);
      const metadata = ([id, value]: readonly [string, string]) =>
        id === "last" ? null : JSON.stringify({ value });
      assert.deepEqual(
        read,
        expected.map((entry) => [entry[0], metadata(entry)]),
      );
      for (const state of [await catalog.read(), await world.open().read()]) {
        assert.equal(state.size, model.size);
        for (const [id, value] of expected) {
          assert.deepEqual(state.get(id)?.properties, id === "last" ? {} : { value });
          assert.equal(state.addressesOf(id)?.length, 1);
        }
      }
    }),
    { numRuns: 15 },
  );
});

test("deletes rows of large fragments through deletion files", async (t) => {
  const world = await createWorld(t);
  const catalog = world.open();
  const names = Array.from({ length: 5_000 }, (_, i) => `t${String(i).padStart(4, "0")}`);
  await put(catalog, ...names.map((name) => table(name)));
  // The fragment is too large to rewrite: each commit adds to its deleted rows.
  const gone = new Set(["t0000", "t0017", "t4999", "t2500"]);
  for (const name of gone) await catalog.mutate((draft) => draft.delete(name));
  const others = world.open();
  await others.mutate((draft) => draft.delete("t0001"));
  await catalog.mutate((draft) => draft.put(table("t0002", { changed: "yes" })));
  const left = names.filter((name) => !gone.has(name) && name !== "t0001");
  assert.deepEqual(
    (await world.rows()).map((row) => row["object_id"]),
    left,
  );
  assert.deepEqual((await others.read()).get("t0002")?.properties, { changed: "yes" });
  const { manifest } = await manifestOf(world);
  assert.deepEqual(manifest.fragments[0]?.deletionFile?.numDeletedRows, 6n);
  assert.equal(manifest.readerFeatureFlags & 1n, 1n);
});

test("absorbs small fragments into larger ones, so that few remain", async (t) => {
  const world = await createWorld(t);
  const catalog = world.open();
  for (let i = 0; i < 100; i++) await put(catalog, table(`t${i}`));
  const { manifest } = await manifestOf(world);
  assert.deepEqual(
    manifest.fragments.map(({ physicalRows }) => Number(physicalRows)),
    [64, 32, 4],
  );
  assert.equal((await world.rows()).length, 100);
});

test("neither loses nor duplicates a merge of the engine beside commits", async (t) => {
  const world = await createWorld(t);
  const catalog = world.open();
  await put(catalog, table("first"));
  const { encodeRows } = await import("../manifest/row-codec.ts");
  const merge = async (i: number) => {
    const lease = await world.engine.acquire(`${world.base}/${MANIFEST_NAME}`);
    try {
      const builder = lease.table.mergeInsert(["object_id"]).whenNotMatchedInsertAll();
      await builder.execute(encodeRows([table(`both${i}`, { by: "engine" }), table(`engine${i}`)]));
    } finally {
      lease.release();
    }
  };
  const commit = (i: number) =>
    catalog.mutate((draft) => {
      if (draft.get(`both${i}`) === undefined) draft.put(table(`both${i}`, { by: "commit" }));
      draft.put(table(`commit${i}`));
    });
  for (let i = 0; i < 12; i++) await Promise.all([merge(i), commit(i)]);
  const rows = await world.rows();
  const expected = ["both", "commit", "engine"].flatMap((name) =>
    Array.from({ length: 12 }, (_, i) => `${name}${i}`),
  );
  assert.deepEqual(rows.map((row) => row["object_id"]).sort(), [...expected, "first"].sort());
  assert.equal((await catalog.read()).size, rows.length);
});

test("finds a commit whose acknowledgement was lost, and does not claim a version of another writer", async (t) => {
  const world = await createWorld(t);
  await put(world.open(), table("first"));
  const disk = createLocalStore();
  let faults: ("before" | "after" | "twice")[] = [];
  const store = {
    ...disk,
    async putIfAbsent(key: string, bytes: Uint8Array, after?: Promise<unknown>) {
      const fault = faults.shift();
      if (fault === "before") {
        await after;
        throw new Error("the store is away");
      }
      const created = await disk.putIfAbsent(key, bytes, after);
      if (fault === "after") throw new Error("the answer is lost");
      // A store that retries a request internally refuses what it has just written.
      return fault === "twice" ? false : created;
    },
  };
  const catalog = world.open(store);
  const other = world.open();
  for (const [i, fault] of (["before", "after", "twice"] as const).entries()) {
    faults = [fault];
    await put(catalog, table(`a${i}`));
    await put(other, table(`b${i}`));
  }
  faults = ["before", "before", "before"];
  await assert.rejects(put(catalog, table("never")), (error) => isLanceError(error, "ServiceUnavailable"));
  await put(catalog, table("again"));
  const ids = (await world.rows()).map((row) => row["object_id"]);
  assert.deepEqual(ids, ["a0", "a1", "a2", "again", "b0", "b1", "b2", "first"]);
  assert.equal((await catalog.read()).size, ids.length);
});

test("writes a version again that could not be synced before answering anything based on it", async (t) => {
  const world = await createWorld(t);
  await put(world.open(), table("first"));
  const disk = createLocalStore();
  let fails = false;
  const putIfAbsent: ObjectStore["putIfAbsent"] = async (...args) => {
    const created = await disk.putIfAbsent(...args);
    if (fails) throw new UnsyncedError(new Error("EIO"));
    return created;
  };
  const catalog = world.open({ ...disk, putIfAbsent });
  await catalog.read();
  const version = async () => (await manifestOf(world)).manifest.version;
  const before = await version();
  fails = true;
  await assert.rejects(put(catalog, table("a")), UnsyncedError);
  assert.equal(await version(), before + 1n);
  // The row is visible, but may not survive a loss of power.
  const isThere = () => catalog.mutate((draft) => draft.get("a") !== undefined);
  await assert.rejects(isThere(), UnsyncedError);
  fails = false;
  assert.equal(await isThere(), true);
  assert.equal(await version(), before + 3n);
  assert.equal(await isThere(), true);
  assert.equal(await version(), before + 3n);
});

test("fails a commit if a store reports its version as both taken and missing", async (t) => {
  const world = await createWorld(t);
  await put(world.open(), table("first"));
  const disk = createLocalStore();
  let puts = 0;
  const putIfAbsent = async () => {
    puts++;
    return false;
  };
  const catalog = world.open({ ...disk, putIfAbsent });
  await assert.rejects(put(catalog, table("a")), (error) => isLanceError(error, "ServiceUnavailable"));
  assert.equal(puts, 3);
});

test("stores the root's properties as metadata of the manifest table, and keeps them in commits", async (t) => {
  const world = await createWorld(t);
  const catalog = world.open();
  assert.deepEqual(await catalog.rootProperties(), {});
  await put(catalog, table("a"));
  const store = createLocalStore();
  const entries = { owner: "ada", "lance.namespace.manifest.reader_feature_flags": "0" };
  await commitMetadata(
    { store, root: keyIn(store.keyOf(world.base), MANIFEST_NAME) },
    { tableMetadata: { entries } },
  );
  assert.deepEqual(await catalog.rootProperties(), { owner: "ada" });
  await put(catalog, table("b"));
  assert.deepEqual(await catalog.rootProperties(), { owner: "ada" });
});

test("gives up a commit that others keep overtaking, and refuses mutations when the queue is full", async (t) => {
  const world = await createWorld(t);
  await put(world.open(), table("first"));
  const disk = createLocalStore();
  const get = async () => new Uint8Array();
  const manifest = createManifestTable(world.base, world.engine, {
    ...disk,
    get,
    putIfAbsent: async () => false,
  });
  const catalog = createCatalog(manifest, silent, { maintenance: false, maxWaiting: 2, maxRetries: 1 });
  const outcomes = await Promise.allSettled(["a", "b", "c"].map((name) => put(catalog, table(name))));
  const codes = outcomes.map((outcome) =>
    outcome.status === "rejected" ? outcome.reason.entry.name : "committed",
  );
  assert.deepEqual(codes, ["ConcurrentModification", "ConcurrentModification", "Throttling"]);
});

async function manifestOf({ base }: World) {
  const store = createLocalStore();
  return readVersion({ store, root: keyIn(store.keyOf(base), MANIFEST_NAME) });
}
