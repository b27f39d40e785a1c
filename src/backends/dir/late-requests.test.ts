import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { Int32, Table, tableToIPC, vectorFromArray } from "apache-arrow";
import { describe, test } from "vitest";
import { type StagedNext, stageNext } from "../../../test/fixtures/dir/batch.ts";
import {
  failsWith,
  openClient,
  silent,
  temporaryDirectory,
} from "../../../test/fixtures/dir/directory-backend.ts";
import { createMemoryStore, openFixture } from "../../../test/fixtures/dir/format.ts";
import { createLateBucket } from "../../../test/support/late-bucket.ts";
import { until } from "../../../test/support/until.ts";
import { LanceError } from "../../namespace/errors.ts";
import { isEarlier } from "../../namespace/lance-namespace.ts";
import { createJournal } from "./batch/journal.ts";
import { resolveAbandoned } from "./batch/resolve.ts";
import { runBatch } from "./batch/run.ts";
import type { DatasetRef } from "./format/dataset.ts";
import { createLocalStore } from "./format/local/local-store.ts";
import { listTree, type ObjectStore } from "./format/storage.ts";
import { deleteVersions } from "./format/versions/delete-versions.ts";
import type { PreparedVersion } from "./format/versions/publish-version.ts";
import { createTag, deleteTag, readTag, updateTag } from "./format/versions/refs/refs.ts";
import { latestVersion } from "./format/versions/version-files.ts";
import { createIdempotencyRecords } from "./idempotency/records.ts";
import { openDirectory } from "./open-directory.ts";

const clock = { now: async () => Date.now() };

/** Opens a table in a bucket that carries requests out late. */
function openLate() {
  const { store: under, root } = openFixture("new", true);
  const bucket = createLateBucket(under);
  return { bucket, under, dataset: { store: bucket.store, root } };
}

describe("a request that a bucket carries out after its repetition", () => {
  test("does not move a tag back that was moved again", async () => {
    const { bucket, dataset } = openLate();
    await createTag(dataset, "t", { version: 1n });
    await bucket.hangDuring(() => updateTag(dataset, "t", { version: 2n }));
    await updateTag(dataset, "t", { version: 3n });
    await bucket.land();
    assert.equal((await readTag(dataset, "t"))?.version, 3n);
  });

  test("does not delete a tag that was created again", async () => {
    const { bucket, dataset } = openLate();
    await createTag(dataset, "t", { version: 1n });
    await bucket.hangDuring(() => deleteTag(dataset, "t"));
    await createTag(dataset, "t", { version: 2n });
    await bucket.land();
    assert.equal((await readTag(dataset, "t"))?.version, 2n);
  });

  test("is the only one that creates a tag, so that the tag does not come back after its deletion", async () => {
    const { bucket, dataset } = openLate();
    const created = bucket.hangDuring(() => createTag(dataset, "t", { version: 1n }));
    await until(async () => {
      await bucket.land();
      return (await readTag(dataset, "t")) !== undefined;
    });
    await created;
    await deleteTag(dataset, "t");
    await bucket.land();
    assert.equal(await readTag(dataset, "t"), undefined);
  });

  test("does not create a tag after an answer that it is there", async () => {
    const { bucket, dataset } = openLate();
    const created = bucket.hangDuring(() => createTag(dataset, "t", { version: 1n }));
    await assert.rejects(created, failsWith("OutcomeUnknown"));
    assert.equal(await readTag(dataset, "t"), undefined);
  });

  test("does not delete a version whose number another one has got", async () => {
    const { bucket, dataset } = openLate();
    const newest = await latestVersion(dataset);
    assert.ok(newest);
    const bytes = (await dataset.store.get(newest.key)) as Uint8Array;
    const range = { start: newest.version, end: -1n };
    await bucket.hangDuring(() => deleteVersions(dataset, [range]));
    assert.notEqual((await latestVersion(dataset))?.version, newest.version);
    await dataset.store.putIfAbsent(newest.key, Uint8Array.from(bytes));
    await bucket.land();
    assert.equal((await latestVersion(dataset))?.version, newest.version);
  });

  test("does not delete the version and the mark of a new table that a dropped one had in the same place", async (t) => {
    const root = await temporaryDirectory(t);
    const bucket = createLateBucket(createLocalStore(root));
    const key = "t.lance/_versions/1.manifest";
    const mark = "t.lance/.lance-reserved";
    for (const each of [key, mark, "t.lance/data/a.lance"]) await bucket.store.put(each, Buffer.from("old"));
    await bucket.hangDuring(() => bucket.store.deleteDirectory("t.lance"));
    for (const each of [key, mark]) await bucket.store.putIfAbsent(each, Buffer.from("new"));
    await bucket.land();
    for (const each of [key, mark]) assert.equal(String(await bucket.store.get(each)), "new");
    assert.deepEqual((await listTree(bucket.store, "t.lance")).sort(), [
      ".lance-reserved",
      "_versions/1.manifest",
    ]);
  });

  test("does not take an idempotency key from the call that repeats a released one", async () => {
    const bucket = createLateBucket(createMemoryStore(true));
    const records = createIdempotencyRecords({ base: "base", store: bucket.store, clock, log: silent });
    const first = await records.take("key", "request");
    assert.ok(!isEarlier(first));
    await bucket.hangDuring(() => first.release());
    assert.ok(!isEarlier(await records.take("key", "request")));
    await bucket.land();
    assert.deepEqual(await records.take("key", "request"), { request: "request", state: "running" });
  });

  test("does not take an idempotency key again that was released", async () => {
    const bucket = createLateBucket(createMemoryStore(true));
    const records = createIdempotencyRecords({ base: "base", store: bucket.store, clock, log: silent });
    const first = await bucket.hangDuring(() => records.take("key", "request"));
    assert.ok(!isEarlier(first));
    await first.release();
    await bucket.land();
    // The release of the repetition does not let the first record come back either.
    for (let count = 0; count < 2; count++) {
      const again = await records.take("key", "request");
      assert.ok(!isEarlier(again));
      assert.deepEqual(await records.take("key", "request"), { request: "request", state: "running" });
      await again.release();
      await bucket.land();
    }
  });

  for (const earlier of ["no", "a released"])
    test(`does not take an idempotency key with ${earlier} record for a call that was refused`, async () => {
      const under = createMemoryStore(true);
      const late: (() => Promise<boolean>)[] = [];
      const unanswered = (change: () => Promise<boolean>, onUnclear?: (() => void) | "wait") => {
        if (late.push(change) > 1) return change();
        if (typeof onUnclear === "function") onUnclear();
        throw new LanceError("ServiceUnavailable", "no answer");
      };
      const store: ObjectStore = {
        ...under,
        async putIfAbsent(key, bytes, after, onUnclear) {
          if (under.objects.has(key)) return false;
          return unanswered(() => under.putIfAbsent(key, bytes, after), onUnclear);
        },
        replace: async (...args) => unanswered(() => under.replace(...args)),
      };
      const records = createIdempotencyRecords({ base: "base", store, clock, log: silent });
      if (earlier !== "no") {
        const bucket = createLateBucket(under);
        const first = createIdempotencyRecords({ base: "base", store: bucket.store, clock, log: silent });
        const taken = await bucket.hangDuring(() => first.take("key", "request"));
        assert.ok(!isEarlier(taken));
        await taken.release();
      }
      await assert.rejects(records.take("key", "request"), failsWith("ServiceUnavailable"));
      await late[0]?.();
      assert.ok(!isEarlier(await records.take("key", "request")));
    });

  test("does not bring back the note of a change that has ended", async () => {
    const under = createMemoryStore(true);
    const bucket = createLateBucket(under);
    const journal = createJournal("base", bucket.store, clock);
    const intent = { versions: [], deletions: [], locations: [], declared: [], departures: [] };
    const own = await bucket.hangDuring(() => journal.begin(intent));
    assert.equal(await own.isOpen(), true);
    await own.end();
    await bucket.land();
    assert.equal(await own.isOpen(), false);
    assert.deepEqual(await journal.abandoned(), []);
    assert.equal((await journal.broken()).length, 1);
  });
});

test("a batch that was undone is undone again when a bucket writes one of its versions late", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  const rows = tableToIPC(new Table({ id: vectorFromArray([1], new Int32()) }), "stream");
  for (const name of ["a", "b"]) await client.upload("createTable", name, {}, rows);
  const bucket = createLateBucket(createLocalStore());
  // The engine finds the files on the disk.
  const { uriOf, keyOf } = createLocalStore();
  const store = { ...bucket.store, uriOf, keyOf };
  const storage = { store, root: root.slice(1), engineOptions: {} };
  const { context, close } = await openDirectory({ root, storage, log: silent, maintenance: false });
  t.onTestFinished(close);
  const datasets = ["a", "b"].map((name) => ({ store, root: `${root.slice(1)}/data/${name}.lance` }));
  const staged = await Promise.all(datasets.map((dataset) => stageNext(dataset, "x")));
  const versions = datasets.map((dataset, i): PreparedVersion => {
    const { version, key, bytes } = staged[i] as StagedNext;
    return { dataset, version, key, bytes, scheme: "V2", stagedKey: undefined, exists: false };
  });
  // Another writer has the number.
  await store.putIfAbsent((staged[1] as StagedNext).key, Buffer.from("of another writer"));
  const batch = { changes: [], departing: "keep", versions } as const;
  const run = () => runBatch(context, batch, new AbortController().signal);
  await assert.rejects(bucket.hangDuring(run), failsWith("ConcurrentModification"));
  const [a] = datasets as [DatasetRef];
  assert.equal((await latestVersion(a))?.version, 1n);
  await bucket.land();
  assert.equal((await latestVersion(a))?.version, 2n);
  await resolveAbandoned(context);
  assert.equal((await latestVersion(a))?.version, 1n);
});

test("two gateways that move a tag at the same moment keep what the other one wrote beside it", async () => {
  const { dataset, under } = openLate();
  await createTag(dataset, "t", { version: 1n });
  const key = [...under.objects.keys()].find((each) => each.endsWith("/t.json")) as string;
  const slow = {
    ...dataset,
    store: {
      ...dataset.store,
      async getTagged(name: string) {
        const found = await dataset.store.getTagged(name);
        const content = JSON.parse(Buffer.from(found?.bytes ?? []).toString());
        if (!("metadata" in content && "by" in content.metadata)) {
          const changed = { ...content, metadata: { by: randomUUID() } };
          under.objects.set(key, Buffer.from(JSON.stringify(changed)));
        }
        return found;
      },
    },
  };
  const moved = await updateTag(slow, "t", { version: 2n });
  assert.equal(moved.version, 2n);
  assert.ok("by" in moved.metadata);
  assert.deepEqual(await readTag(dataset, "t"), moved);
});
