import assert from "node:assert/strict";
import { test, vi } from "vitest";
import { openDirectory } from "../open-directory.ts";
import { silent, temporaryDirectory } from "../test-support.ts";
import { ended, leaveIntent } from "./fixture.ts";
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
