import assert from "node:assert/strict";
import { readdir, readFile, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { Int32, Table, tableToIPC, vectorFromArray } from "apache-arrow";
import { type TestContext, test } from "vitest";
import { type StagedNext, stageNext } from "../../../../test/fixtures/dir/batch.ts";
import {
  failsWith,
  openClient,
  silent,
  temporaryDirectory,
} from "../../../../test/fixtures/dir/directory-backend.ts";
import { withParts } from "../../../../test/fixtures/dir/with-parts.ts";
import { beginCall } from "../../../../test/support/caller.ts";
import { LanceNamespaceService } from "../../../gen/lance/namespace/v1/service_pb.ts";
import type { DatasetRef } from "../format/dataset.ts";
import type { ObjectStore } from "../format/storage.ts";
import { latestVersion } from "../format/versions/version-files.ts";
import { openDirectory } from "../open-directory.ts";
import type { DirContext } from "../operations/context.ts";
import { createManagedVersionOperations } from "../operations/versions/managed-versions.ts";
import { digestOf } from "./intent.ts";
import { createJournal, type JournalTimes } from "./journal.ts";
import { resolveAbandoned, takeBack } from "./resolve.ts";

const rows = tableToIPC(new Table({ id: vectorFromArray([1], new Int32()) }), "stream");

const HOUR_AGO = new Date(Date.now() - 3_600_000);

/** Refused notes stay for longer than an hour. */
const TIMES: JournalTimes = { renewMs: 60_000, leaseMs: 60_000, lifeMs: 60_000, retainMs: 7_200_000 };

/** Returns tables `a` and `b`, a process that commits both at once, and another process that takes over from it. */
async function createWorld(t: TestContext) {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  for (const name of ["a", "b"]) await client.upload("createTable", name, {}, rows);
  const { context, close } = await openDirectory({ root, log: silent });
  t.onTestFinished(close);
  const { store, clock, layout } = context;
  const base = join(root, "data");
  const datasets = ["a", "b"].map(
    (name): DatasetRef => ({ store, root: join(base, `${name}.lance`).slice(1) }),
  );
  const staged = await Promise.all(datasets.map((dataset) => stageNext(dataset, "x")));
  const intents = join(base, ".intents");
  return {
    context,
    staged,
    notes: () => readdir(intents),
    versions: async () => (await Promise.all(datasets.map(latestVersion))).map((found) => found?.version),
    /** Looks for abandoned notes as another process does: the notes are of another machine, and an hour old. */
    async takeOver(times: Partial<JournalTimes> = {}) {
      const names = (await readdir(intents)).filter((name) => name.endsWith(".json"));
      for (const name of names) {
        const path = join(intents, name);
        const { owner, ...rest } = JSON.parse(await readFile(path, "utf8"));
        await writeFile(
          path,
          JSON.stringify({ owner: { ...owner, process: "another", kernel: null }, ...rest }),
        );
        await utimes(path, HOUR_AGO, HOUR_AGO);
      }
      const journal = createJournal(layout.baseKey, store, clock, { ...TIMES, ...times });
      await resolveAbandoned({ ...context, journal });
    },
    commit(changed: Partial<DirContext>) {
      const method = LanceNamespaceService.method.batchCreateTableVersions;
      const entries = staged.map(({ version, manifestPath }, i) => ({
        id: [["a", "b"][i] as string],
        version,
        manifestPath,
      }));
      const operations = createManagedVersionOperations(withParts(context, changed));
      return operations.batchCreateTableVersions(
        create(method.input, { entries }),
        beginCall(method, { id: [] }),
      );
    },
  };
}

/** Returns a store that calls back right before it puts an object. */
function beforePut(store: ObjectStore, key: string, happens: () => Promise<unknown>): { store: ObjectStore } {
  return {
    store: {
      ...store,
      async putIfAbsent(each, bytes) {
        if (each === key) await happens();
        return store.putIfAbsent(each, bytes);
      },
    },
  };
}

for (const [moment, index] of [
  ["before its first version", 0],
  ["between its versions", 1],
] as const) {
  test(`a slow batch that another process takes over ${moment} is undone as a whole`, async (t) => {
    const { context, staged, versions, takeOver, commit, notes } = await createWorld(t);
    const key = staged[index]?.key as string;
    const batch = commit(beforePut(context.store, key, () => takeOver()));
    await assert.rejects(batch, failsWith("ConcurrentModification"));
    assert.deepEqual(await versions(), [1n, 1n]);
    assert.deepEqual(await notes(), [], "the owner has taken its last version back and ended the note");
    // The staged manifests are back for another attempt.
    await commit({});
    assert.deepEqual(await versions(), [2n, 2n]);
    assert.equal((await context.catalog.read()).verdicts.size <= 1, true);
  });
}

test("a version that a refused batch publishes late is taken back while the note is kept", async (t) => {
  const { context, staged, versions, takeOver, commit, notes } = await createWorld(t);
  const [, b] = staged as [(typeof staged)[0], (typeof staged)[0]];
  const { promise: forever } = Promise.withResolvers<void>();
  const { promise: fenced, resolve } = Promise.withResolvers<void>();
  // The owner never comes back.
  void commit(
    beforePut(context.store, b.key, async () => {
      await takeOver();
      resolve();
      await forever;
    }),
  );
  await fenced;
  assert.deepEqual(await versions(), [1n, 1n]);
  await context.store.putIfAbsent(b.key, b.bytes);
  await takeOver();
  assert.deepEqual(await versions(), [1n, 1n]);
  assert.equal((await notes()).length, 1);
  await takeOver({ retainMs: 60_000 });
  assert.deepEqual(await notes(), []);
});

test("a batch that has come to its commit is completed by the process that takes over", async (t) => {
  const { context, versions, takeOver, commit, notes } = await createWorld(t);
  const catalog: DirContext["catalog"] = {
    ...context.catalog,
    async mutate(mutation) {
      const answer = await context.catalog.mutate(mutation);
      if ((await context.catalog.read()).verdicts.size > 0) await takeOver();
      return answer;
    },
  };
  await commit({ catalog });
  assert.deepEqual(await versions(), [2n, 2n]);
  assert.deepEqual(await notes(), []);
});

test("a change that takes longer than it may gives itself up", async (t) => {
  const { context, versions, commit, notes } = await createWorld(t);
  const { layout, store, clock } = context;
  const journal = createJournal(layout.baseKey, store, clock, { ...TIMES, lifeMs: 0 });
  await assert.rejects(commit({ journal }), failsWith("ConcurrentModification"));
  assert.deepEqual([await versions(), await notes()], [[1n, 1n], []]);
});

test("a process that renews its note is left alone, and its renewals go with the note", async (t) => {
  const { context, staged, versions, takeOver, commit, notes } = await createWorld(t);
  const { layout, store, clock } = context;
  const renewed = async () => {
    while (!(await notes()).some((name) => name.endsWith(".alive"))) await new Promise(setImmediate);
  };
  const changed = beforePut(store, staged[1]?.key as string, async () => {
    await renewed();
    await takeOver();
    assert.equal((await notes()).filter((name) => name.endsWith(".json")).length, 1);
  });
  await commit({
    ...changed,
    journal: createJournal(layout.baseKey, store, clock, { ...TIMES, renewMs: 5 }),
  });
  assert.deepEqual([await versions(), await notes()], [[2n, 2n], []]);
});

test("a process that is slow to take a version back leaves the next one of its number", async (t) => {
  const { context, staged } = await createWorld(t);
  const [{ version, key, bytes, manifestPath }] = staged as [StagedNext];
  const { store } = context;
  await store.putIfAbsent(key, bytes);
  const next = Buffer.concat([bytes, Buffer.from("of another writer")]);
  const slow: ObjectStore = {
    ...store,
    async putIfAbsent(...args) {
      // Another process has taken the version back, and a client has committed.
      await store.put(key, next);
      return store.putIfAbsent(...args);
    },
  };
  const intended = {
    dataset: { root: key.slice(0, key.indexOf("/_versions/")), branch: null },
    ...{ version: String(version), key, stagedKey: manifestPath, digest: digestOf(bytes), exists: false },
  };
  const nothing = { deletions: [], locations: [], declared: [], departures: [] };
  await takeBack({ ...context, store: slow }, "change", { ...nothing, versions: [intended] });
  assert.deepEqual(await store.get(key), next);
});
