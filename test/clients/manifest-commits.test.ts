import assert from "node:assert/strict";
import { pino } from "pino";
import { describe, it, type TestContext } from "vitest";
import { createCatalog } from "../../src/backends/dir/catalog/catalog.ts";
import {
  createManifestTable,
  MANIFEST_NAME,
} from "../../src/backends/dir/catalog/manifest/manifest-table.ts";
import { createOptimizing, mayLeaveGap } from "../../src/backends/dir/catalog/manifest/prune-and-compact.ts";
import { createEngine } from "../../src/backends/dir/engine/engine.ts";
import type { NativeTable } from "../../src/backends/dir/engine/native/native.ts";
import { createLocalStore } from "../../src/backends/dir/format/local/local-store.ts";
import { keyIn } from "../../src/backends/dir/format/storage.ts";
import { pruneVersions } from "../../src/backends/dir/format/versions/prune.ts";
import { readVersion } from "../../src/backends/dir/format/versions/version-files.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { startPylanceRacer } from "./support/pylance-racer.ts";
import { runPython } from "./support/python.ts";

const log = pino({ level: "silent" });

async function createWorld(t: TestContext, ...properties: readonly string[]) {
  const { path: base, remove } = await temporaryDirectory();
  const engine = createEngine({ log });
  const store = createLocalStore();
  const catalog = createCatalog(createManifestTable(base, engine, store), log, { maintenance: false });
  await catalog.mutate((draft) =>
    draft.put({ objectId: "n", objectType: "namespace", location: undefined, properties: {} }),
  );
  const pylance = startPylanceRacer(base, ...properties);
  t.onTestFinished(async () => {
    await pylance.end();
    await catalog.close();
    await engine.close();
    await remove();
  });
  const dataset = { store, root: keyIn(store.keyOf(base), MANIFEST_NAME) };
  /** Works with the manifest as the engine has it. */
  async function withEngine<T>(work: (table: NativeTable) => Promise<T>): Promise<T> {
    const lease = await engine.acquire(store.uriOf(dataset.root));
    try {
      await lease.table.checkoutLatest();
      return await work(lease.table);
    } finally {
      lease.release();
    }
  }
  const newest = async () => (await readVersion(dataset)).manifest;
  return {
    base,
    catalog,
    indices: () =>
      withEngine(async (table) => {
        const stats = await Promise.all(
          (await table.listIndices()).map(({ name }) => table.indexStats(name)),
        );
        return stats.filter((each) => each !== null);
      }),
    optimizing: createOptimizing(newest, () => withEngine((table) => table.optimize(0)), log),
    pylance: pylance.racer,
    declare: (name: string) =>
      catalog.mutate((draft) =>
        draft.put({
          objectId: `n$${name}`,
          objectType: "table",
          location: `0_n$${name}`,
          properties: { made: "here" },
        }),
      ),
    drop: (name: string) => catalog.mutate((draft) => draft.delete(`n$${name}`)),
    prune: () =>
      pruneVersions(dataset, {
        keep: 3,
        minAgeMs: 0,
        mayGo: mayLeaveGap,
        clock: { now: async () => Date.now() + 60_000 },
        known: new Map(),
        signal: new AbortController().signal,
      }),
  };
}

describe("the manifest's commits and pylance's directory catalog", () => {
  it("see each other's rows after every kind of commit", async (t) => {
    const { catalog, pylance, declare, drop } = await createWorld(t);
    const expected: string[] = [];
    for (let i = 0; i < 12; i++) {
      await declare(`a${i}`);
      assert.ok((await pylance.call({ kind: "declare", id: ["n", `b${i}`] })).ok);
      expected.push(`a${i}`, `b${i}`);
      // Everything that pylance has written is one fragment, which loses rows here.
      if (i % 3 === 2) {
        await drop(`b${i - 1}`);
        expected.splice(expected.indexOf(`b${i - 1}`), 1);
        await declare(`b${i}`);
      }
      assert.deepEqual(await pylance.tables(["n"]), expected.toSorted());
      assert.equal((await catalog.read()).size, expected.length + 1);
    }
  });

  it("lose nothing at the same time", async (t) => {
    const { catalog, pylance, declare } = await createWorld(t);
    const names = Array.from({ length: 40 }, (_, i) => i);
    const theirs = names.map((i) => pylance.call({ kind: "declare", id: ["n", `theirs${i}`] }));
    for (const i of names) await declare(`ours${i}`);
    const made = (await Promise.all(theirs)).flatMap(({ ok }, i) => (ok ? [`theirs${i}`] : []));
    const expected = [...made, ...names.map((i) => `ours${i}`)].sort();
    assert.deepEqual(await pylance.tables(["n"]), expected);
    assert.equal((await catalog.read()).size, expected.length + 1);
  });

  it("keep what became of a change through every commit of pylance", async (t) => {
    const { catalog, pylance } = await createWorld(t, "inline_optimization_enabled=true");
    await catalog.mutate((draft) => draft.record("one", "committed"));
    await catalog.mutate((draft) => draft.record("other", "refused"));
    const expected = { one: "committed", other: "refused" };
    const found = async () => Object.fromEntries((await catalog.read()).verdicts);
    for (const kind of ["declare", "create", "drop"] as const) {
      const id = ["n", kind === "drop" ? "create" : kind];
      assert.ok((await pylance.call({ kind, id })).ok);
      assert.deepEqual(await found(), expected);
    }
    catalog.forget("one");
    await catalog.mutate((draft) => draft.delete("n$declare"));
    assert.deepEqual(await found(), { other: "refused" });
    assert.deepEqual(await pylance.tables(["n"]), []);
  });

  it("keep the indices right that pylance gave the manifest", async (t) => {
    const properties = ["inline_optimization_enabled=true"];
    const { base, pylance, declare, drop, indices, optimizing, prune } = await createWorld(t, ...properties);
    const expected = new Set<string>();
    const gone: string[] = [];
    for (let round = 0; round < 3; round++) {
      assert.ok((await pylance.call({ kind: "declare", id: ["n", `b${round}`] })).ok);
      for (let i = 0; i < 20; i++) await declare(`a${round}-${i}`);
      for (let i = 0; i < 20; i++) expected.add(`a${round}-${i}`);
      await drop(`b${round}`);
      gone.push(`n$b${round}`);
      await declare(`a${round}-0`);
      await runPython("manifest_indices.py", base, ...gone);
      // The engine here passes over pylance's newer BTREE, which stays at what it knows.
      assert.ok((await indices()).some(({ numUnindexedRows }) => numUnindexedRows > 0));
      await optimizing.run(new AbortController().signal);
      assert.ok((await indices()).every(({ numUnindexedRows }) => numUnindexedRows === 0));
      await prune();
      await runPython("manifest_indices.py", base, ...gone);
      assert.deepEqual(await pylance.tables(["n"]), [...expected].sort());
    }
  });

  it("find each other over versions that were pruned", async (t) => {
    const { pylance, declare, prune } = await createWorld(t);
    assert.deepEqual(await pylance.tables(["n"]), []);
    const expected: string[] = [];
    for (let round = 0; round < 3; round++) {
      for (let i = 0; i < 20; i++) {
        await declare(`a${round}-${i}`);
        expected.push(`a${round}-${i}`);
      }
      assert.ok((await prune()).versions > 10);
      // The version that pylance knows is gone, and so is the one after it.
      assert.deepEqual(await pylance.tables(["n"]), expected.toSorted());
      await pylance.call({ kind: "declare", id: ["n", `b${round}`] });
      expected.push(`b${round}`);
      assert.deepEqual(await pylance.tables(["n"]), expected.toSorted());
    }
  });
});
