import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { expect, type TestContext, test } from "vitest";
import { failsWith, silent, temporaryDirectory } from "../../../../../test/fixtures/dir/directory-backend.ts";
import { createDiskBucket } from "../../../../../test/support/disk-bucket.ts";
import { createRandom } from "../../../../../test/support/random.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { createEngine } from "../../engine/engine.ts";
import { RefusedRequest } from "../../format/decisive-request.ts";
import { createLocalStore } from "../../format/local/local-store.ts";
import type { Bucket, Outcome } from "../../stores/bucket.ts";
import { createRemoteStore } from "../../stores/remote-store.ts";
import { type Catalog, createCatalog } from "../catalog.ts";
import { createManifestTable, MANIFEST_NAME } from "../manifest/manifest-table.ts";

/** Carries out a request to put a new version, or does something else. */
type OnVersion = (put: () => Promise<Outcome>) => Promise<Outcome>;

/** Carries out the write of another file of a commit, or does something else. */
type OnFile = (put: () => Promise<void>) => Promise<void>;

const isVersion = (key: string) => key.endsWith(".manifest");

async function createWorld(t: TestContext) {
  const base = await temporaryDirectory(t);
  const engine = createEngine({ log: silent });
  t.onTestFinished(() => engine.close());
  const written: string[] = [];
  /** Opens a catalog on a bucket, like another process. */
  function open(onVersion: OnVersion = (put) => put(), onFile: OnFile = (put) => put()): Catalog {
    const disk = createLocalStore();
    const plain = createDiskBucket(disk);
    const bucket: Bucket = {
      ...plain,
      listsInOrder: true,
      put: (key, bytes) =>
        onFile(async () => {
          written.push(key);
          await plain.put(key, bytes);
        }),
      create: (key, bytes, attempts) => {
        const put = () => plain.create(key, bytes, attempts);
        return isVersion(key) ? onVersion(put) : put();
      },
    };
    const store = { ...createRemoteStore(bucket), uriOf: disk.uriOf, keyOf: disk.keyOf };
    return createCatalog(createManifestTable(base, engine, store), silent, { maintenance: false });
  }
  const files = async (directory: string) => readdir(join(base, MANIFEST_NAME, directory));
  await declare(open(), "first", "setup");
  return {
    open,
    /** Number of data files that have been written. */
    dataFiles: () => written.filter((key) => key.includes("/data/")).length,
    /** Asserts that the names have these owners, and how many data files belong to no version. Default: none. */
    async assertWhole(owners: Readonly<Record<string, string>>, left = 0) {
      const state = await open().read();
      const found = [...state.descendants("")].map((id) => [id, state.get(id)?.properties["by"]]);
      assert.deepEqual(Object.fromEntries(found), { first: "setup", ...owners });
      assert.ok([...state.descendants("")].every((id) => state.addressesOf(id)?.length === 1));
      // The first version has no rows.
      const versions = (await files("_versions")).filter(isVersion).length - 1;
      assert.equal((await files("data")).length, versions + left);
    },
  };
}

function declare(catalog: Catalog, id: string, by: string): Promise<void> {
  return catalog.mutate((draft) => {
    if (draft.get(id) !== undefined) throw new LanceError("TableAlreadyExists", id);
    draft.put({ objectId: id, objectType: "table", location: `${id}.lance`, properties: { by } });
  });
}

/** A gate at which requests to put a version wait. */
function createGate() {
  const held: (() => void)[] = [];
  let isOpen = true;
  const pass: OnVersion = async (put) => {
    if (!isOpen) await new Promise<void>((resolve) => held.push(resolve));
    return put();
  };
  return {
    pass,
    held: () => held.length,
    close() {
      isOpen = false;
    },
    open() {
      isOpen = true;
      for (const release of held.splice(0)) release();
    },
  };
}

test("writes the files of the next commit while a version is put, and publishes it after that version", async (t) => {
  const world = await createWorld(t);
  const gate = createGate();
  const catalog = world.open(gate.pass);
  await declare(catalog, "before", "ours");
  gate.close();
  const files = world.dataFiles();
  const a = declare(catalog, "a", "ours");
  await expect.poll(gate.held).toBe(1);
  const rest = ["b", "c"].map((id) => declare(catalog, id, "ours"));
  await expect.poll(world.dataFiles).toBe(files + 2);
  assert.equal(gate.held(), 1, "the version that follows waits");
  assert.equal(catalog.known().get("a"), undefined, "no read sees a version before it is stored");
  gate.open();
  await Promise.all([a, ...rest]);
  await world.assertWhole({ before: "ours", a: "ours", b: "ours", c: "ours" });
});

test("refuses a name that the version before it gives only when that version is stored", async (t) => {
  const world = await createWorld(t);
  const gate = createGate();
  const catalog = world.open(gate.pass);
  await declare(catalog, "before", "ours");
  gate.close();
  const a = declare(catalog, "a", "ours");
  await expect.poll(gate.held).toBe(1);
  const answered: string[] = [];
  const files = world.dataFiles();
  const [again, b] = [declare(catalog, "a", "again"), declare(catalog, "b", "ours")];
  again.catch(() => answered.push("a"));
  await expect.poll(world.dataFiles).toBe(files + 1);
  assert.deepEqual(answered, []);
  gate.open();
  await Promise.all([a, b]);
  await assert.rejects(again, failsWith("TableAlreadyExists"));
  await world.assertWhole({ before: "ours", a: "ours", b: "ours" });
});

test("changes and removes rows of a version that is still being put", async (t) => {
  const world = await createWorld(t);
  const gate = createGate();
  const catalog = world.open(gate.pass);
  for (const id of ["x", "y"]) await declare(catalog, id, "ours");
  gate.close();
  const a = ["a", "b", "c"].map((id) => declare(catalog, id, "ours"));
  await expect.poll(gate.held).toBe(1);
  const files = world.dataFiles();
  const change = catalog.mutate((draft) => {
    for (const id of ["a", "x"]) draft.delete(id);
    draft.put({ objectId: "b", objectType: "table", location: "b.lance", properties: { by: "changed" } });
  });
  await expect.poll(world.dataFiles).toBe(files + 1);
  gate.open();
  await Promise.all([...a, change]);
  await world.assertWhole({ y: "ours", b: "changed", c: "ours" });
});

const FAILURES = {
  "is refused": () => new RefusedRequest("ServiceUnavailable", "denied"),
  "has an unknown outcome": () => new LanceError("ServiceUnavailable", "timed out"),
};

for (const [what, fail] of Object.entries(FAILURES))
  test(`decides the next group again when the version that it follows ${what}`, async (t) => {
    const world = await createWorld(t);
    let isFailing = false;
    const gate = createGate();
    const catalog = world.open((put) => gate.pass(() => (isFailing ? Promise.reject(fail()) : put())));
    await declare(catalog, "before", "ours");
    gate.close();
    isFailing = true;
    const a = declare(catalog, "a", "first");
    await expect.poll(gate.held).toBe(1);
    const files = world.dataFiles();
    const again = ["a", "b"].map((id) => declare(catalog, id, "second"));
    await expect.poll(world.dataFiles).toBe(files + 1);
    gate.open();
    await assert.rejects(a);
    isFailing = false;
    await Promise.all(again);
    // The failed version may still arrive, so its file remains.
    await world.assertWhole({ before: "ours", a: "second", b: "second" }, 1);
  });

test("decides the next group again when another writer makes the version that it follows", async (t) => {
  const world = await createWorld(t);
  const gate = createGate();
  const catalog = world.open(gate.pass);
  await declare(catalog, "before", "ours");
  gate.close();
  const a = declare(catalog, "a", "ours");
  await expect.poll(gate.held).toBe(1);
  const files = world.dataFiles();
  const b = assert.rejects(declare(catalog, "b", "ours"), failsWith("TableAlreadyExists"));
  const c = declare(catalog, "c", "ours");
  await expect.poll(world.dataFiles).toBe(files + 1);
  await declare(world.open(), "b", "theirs");
  gate.open();
  await Promise.all([a, b, c]);
  await world.assertWhole({ before: "ours", a: "ours", b: "theirs", c: "ours" });
});

test("a process that ends while two commits are in flight leaves the first one, both or neither", async (t) => {
  const world = await createWorld(t);
  const gate = createGate();
  const catalog = world.open(gate.pass);
  await declare(catalog, "before", "ours");
  gate.close();
  void declare(catalog, "a", "lost");
  await expect.poll(gate.held).toBe(1);
  const files = world.dataFiles();
  void declare(catalog, "b", "lost");
  await expect.poll(world.dataFiles).toBe(files + 1);
  // Nothing of the process goes on from here: the gate stays closed.
  const next = world.open();
  await Promise.all(["a", "b"].map((id) => declare(next, id, "next")));
  const state = await world.open().read();
  assert.deepEqual(
    ["a", "b"].map((id) => state.get(id)?.properties["by"]),
    ["next", "next"],
  );
});

test("gives each name once, and acknowledges exactly those, whatever happens to the requests of several processes", async (t) => {
  const world = await createWorld(t);
  const { below } = createRandom(95);
  const pause = async () => {
    for (let turns = below(12); turns > 0; turns--) await turn();
  };
  const onVersion: OnVersion = async (put) => {
    await pause();
    const luck = below(20);
    if (luck === 0) return { unclear: new LanceError("ServiceUnavailable", "timed out") };
    const outcome = await put();
    await pause();
    return luck === 1 ? { unclear: new LanceError("ServiceUnavailable", "the answer is lost") } : outcome;
  };
  const onFile: OnFile = async (put) => {
    await pause();
    if (below(50) === 0) throw new LanceError("ServiceUnavailable", "the storage fails");
    await put();
  };
  const catalogs = [world.open(onVersion, onFile), world.open(onVersion, onFile)];
  const owners = new Map<string, string[]>();
  const unknown = new Set<string>();
  async function client(name: string, catalog: Catalog) {
    for (let call = 0; call < 6; call++) {
      await pause();
      const id = `t${below(40)}`;
      const by = `${name}.${call}`;
      await declare(catalog, id, by).then(
        () => owners.set(id, [...(owners.get(id) ?? []), by]),
        (error: LanceError) => {
          if (error.kind === "OutcomeUnknown") unknown.add(by);
        },
      );
    }
  }
  await Promise.all(
    Array.from({ length: 16 }, (_, i) => client(String(i), catalogs[i % 4 === 0 ? 1 : 0] as Catalog)),
  );
  const state = await world.open().read();
  const given = [...state.descendants("")].filter((id) => id !== "first");
  for (const id of given) {
    const by = state.get(id)?.properties["by"] as string;
    assert.ok(unknown.has(by) || owners.get(id)?.[0] === by, `${id} belongs to ${by}`);
    assert.equal(state.addressesOf(id)?.length, 1);
  }
  for (const [id, each] of owners) {
    assert.equal(each.length, 1, `${id} was given ${each.length} times`);
    assert.equal(state.get(id)?.properties["by"], each[0]);
  }
  assert.ok(owners.size > 20);
});
