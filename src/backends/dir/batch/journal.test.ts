import assert from "node:assert/strict";
import { test, vi } from "vitest";
import { ended, leaveIntent } from "../../../../test/fixtures/dir/batch.ts";
import { silent, temporaryDirectory } from "../../../../test/fixtures/dir/directory-backend.ts";
import { openDirectory } from "../open-directory.ts";
import { createJournal } from "./journal.ts";

test("a change whose note is removed while notes are read is not abandoned", async (t) => {
  const root = await temporaryDirectory(t);
  const { context, close } = await openDirectory({ root, log: silent, maintenance: false });
  t.onTestFinished(close);
  const { store, clock, layout } = context;
  // Its process cannot be looked for, so that only its silence shows that it has ended.
  await leaveIntent(root, {}, { ...ended, kernel: null });
  const removing = {
    ...store,
    async get(key: string) {
      const bytes = await store.get(key);
      await store.delete(key);
      return bytes;
    },
  };
  assert.deepEqual(await createJournal(layout.baseKey, removing, clock).abandoned(), []);
});

test("a change from before the storage's clock was set back is abandoned once its owner has been silent for a while", async (t) => {
  const root = await temporaryDirectory(t);
  const { context, close } = await openDirectory({ root, log: silent, maintenance: false });
  t.onTestFinished(close);
  const { store, layout } = context;
  await leaveIntent(root, {}, { ...ended, kernel: null });
  const clock = { now: async () => Date.now() - 3_600_000 };
  const journal = createJournal(layout.baseKey, store, clock);
  const monotonic = Math.floor(performance.now());
  let passed = 0;
  vi.spyOn(performance, "now").mockImplementation(() => monotonic + passed);
  t.onTestFinished(() => void vi.restoreAllMocks());
  assert.deepEqual(await journal.abandoned(), []);
  passed = 59_999;
  assert.deepEqual(await journal.abandoned(), []);
  passed = 60_001;
  const [pending, ...others] = await journal.abandoned();
  assert.deepEqual(others, []);
  assert.equal(await pending?.isOpen(), true);
});

const intent = { versions: [], deletions: [], locations: [], declared: [], departures: [] };

for (const where of ["a disk", "a bucket"])
  test(`a change whose note in ${where} is neither acknowledged nor removed is abandoned at once`, async (t) => {
    const root = await temporaryDirectory(t);
    const { context, close } = await openDirectory({ root, log: silent, maintenance: false });
    t.onTestFinished(close);
    const { store, clock, layout } = context;
    let isBroken = true;
    const failing = async (key: string, bytes: Uint8Array) => {
      await store.put(key, bytes);
      if (isBroken) throw new Error("the storage has failed");
      return true;
    };
    const broken = {
      ...store,
      files: where === "a disk" ? store.files : undefined,
      put: async (key: string, bytes: Uint8Array) => void (await failing(key, bytes)),
      putIfAbsent: failing,
      async delete(key: string) {
        if (isBroken) throw new Error("the storage has failed");
        return store.delete(key);
      },
    };
    const journal = createJournal(layout.baseKey, broken, clock);
    await assert.rejects(journal.begin(intent), /has failed/);
    isBroken = false;
    for (const pending of await journal.abandoned()) await pending.end();
    assert.deepEqual(await journal.ids(), new Set());
  });
