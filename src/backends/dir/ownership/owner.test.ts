import assert from "node:assert/strict";
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { describe, type TestContext, test } from "vitest";
import { temporaryDirectory } from "../../../../test/fixtures/dir/directory-backend.ts";
import { createDiskBucket } from "../../../../test/support/disk-bucket.ts";
import { createLocalStore } from "../format/local/local-store.ts";
import type { ObjectStore } from "../format/storage.ts";
import { createRemoteStore } from "../stores/remote-store.ts";
import { createNotes, hasEnded, type Owner, THIS_PROCESS } from "./owner.ts";

const SOURCE = `
  import { parentPort } from "node:worker_threads";
  import { THIS_PROCESS } from ${JSON.stringify(import.meta.resolve("./owner.ts"))};
  parentPort.postMessage(THIS_PROCESS);
  parentPort.on("message", () => {});
`;

test("a worker that has ended is known to have ended, although its process goes on", async (t) => {
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(SOURCE)}`));
  t.onTestFinished(() => void worker.terminate());
  const [owner] = (await once(worker, "message")) as [Owner];
  assert.deepEqual([owner.pid, await hasEnded(owner)], [THIS_PROCESS.pid, false]);
  await worker.terminate();
  assert.equal(await hasEnded(owner), true);
  assert.equal(await hasEnded(THIS_PROCESS), false);
});

const STORES: Readonly<Record<string, (root: string) => ObjectStore>> = {
  "a disk": createLocalStore,
  "a bucket": (root) => createRemoteStore(createDiskBucket(createLocalStore(root))),
};

/** An owner that nobody can look for, so that only its silence counts. */
const unseen = { ...THIS_PROCESS, process: "other", kernel: null };

describe.each(Object.entries(STORES))("notes on %s", (_, createStore) => {
  async function openNotes(t: TestContext) {
    const store = createStore(await temporaryDirectory(t));
    let ahead = 0;
    const clock = { now: async () => Date.now() + ahead };
    const notes = createNotes("notes", store, clock, ".json");
    const write = (id: string) => store.put(notes.keyOf(id), Buffer.from("{}"));
    const pass = (ms: number) => {
      ahead += ms;
    };
    return { store, notes, write, pass };
  }

  test("a note of another process counts until its owner has been silent for too long", async (t) => {
    const { notes, write, pass } = await openNotes(t);
    await write("a");
    assert.equal(await notes.isLeft("a", unseen, true, 60_000), false);
    pass(61_000);
    assert.equal(await notes.isLeft("a", unseen, true, 60_000), true);
    const { stop } = notes.renew("a", { renewMs: 1, leaseMs: 60_000 }, performance.now());
    await new Promise((resolve) => setTimeout(resolve, 30));
    await stop();
    pass(-1_000);
    assert.deepEqual(await notes.ids(), ["a"], "signs are no notes");
    assert.equal(await notes.isLeft("a", unseen, true, 60_999), false);
  });

  test("a note of this process counts for as long as its work goes on, whatever its age", async (t) => {
    const { notes, write, pass } = await openNotes(t);
    await write("a");
    pass(10 * 60_000);
    assert.equal(await notes.isLeft("a", THIS_PROCESS, true, 60_000), false);
    assert.equal(await notes.isLeft("a", THIS_PROCESS, false, 60_000), true);
  });

  test("a late sign does not bring a note back, and is found as a stray", async (t) => {
    const { notes, store, write } = await openNotes(t);
    await write("a");
    await store.delete(notes.keyOf("a"));
    const { stop } = notes.renew("a", { renewMs: 1, leaseMs: 60_000 }, performance.now());
    await new Promise((resolve) => setTimeout(resolve, 30));
    assert.equal(await stop(), true);
    assert.deepEqual(await notes.ids(), []);
    const [stray, ...others] = await notes.strays();
    assert.deepEqual(others, []);
    assert.ok(stray !== undefined && (await store.head(stray)) !== undefined);
    await notes.removeSigns("a");
    assert.deepEqual(await notes.strays(), []);
  });

  test("a note that was removed meanwhile is not called left", async (t) => {
    const { notes } = await openNotes(t);
    assert.equal(await notes.isLeft("gone", unseen, true, 0), false);
  });
});
