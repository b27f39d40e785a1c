import assert from "node:assert/strict";
import { type TestContext, test, vi } from "vitest";
import { openBaseDirectory, table } from "../../../../../test/fixtures/catalog/catalog.ts";
import { failsWith } from "../../../../../test/fixtures/dir/directory-backend.ts";
import { pruneVersions } from "../../format/versions/prune.ts";
import { latestVersion } from "../../format/versions/version-files.ts";
import { mayLeaveGap } from "../manifest/prune-and-compact.ts";

/** A catalog that another process changes and prunes while the put of a version waits. */
async function createWorld(t: TestContext) {
  const { dataset, open, manifestTable } = await openBaseDirectory(t);
  const other = open();
  for (let i = 0; i < 4; i++) await other.mutate((draft) => draft.put(table(`t${i}`)));
  let before: (() => Promise<unknown>) | undefined;
  let after: (() => Promise<unknown>) | undefined;
  const slow: typeof dataset.store = {
    ...dataset.store,
    async putIfAbsent(key, ...rest) {
      if (!key.endsWith(".manifest")) return dataset.store.putIfAbsent(key, ...rest);
      const [first, last] = [before, after];
      [before, after] = [undefined, undefined];
      await first?.();
      const isOurs = await dataset.store.putIfAbsent(key, ...rest);
      await last?.();
      return isOurs;
    },
  };
  t.onTestFinished(() => void vi.useRealTimers());
  vi.useFakeTimers({ toFake: ["Date"] });
  return {
    open,
    late: open(manifestTable(slow)),
    /** Lets others commit some versions and prune all but the newest ones; the clock goes on by a minute. */
    async othersGoOn(versions: number, keep: number) {
      for (let i = 0; i < versions; i++) await other.mutate((draft) => draft.put(table(`u${i}`)));
      await pruneVersions(dataset, {
        keep,
        minAgeMs: 0,
        clock: { now: async () => Date.now() + 60_000 },
        mayGo: mayLeaveGap,
        known: new Map(),
        signal: new AbortController().signal,
      });
      vi.setSystemTime(Date.now() + 60_000);
    },
    newest: async () => (await latestVersion(dataset))?.version,
    beforePut: (work: () => Promise<unknown>) => {
      before = work;
    },
    afterPut: (work: () => Promise<unknown>) => {
      after = work;
    },
  };
}

test("decides again a commit whose version others have made and pruned while it waited", async (t) => {
  const { open, late, othersGoOn, beforePut } = await createWorld(t);
  // The version after it is the oldest that is left.
  beforePut(() => othersGoOn(25, 24));
  await late.mutate((draft) => draft.put(table("ours")));
  for (const catalog of [open(), late]) {
    const state = await catalog.read();
    assert.notEqual(state.get("ours"), undefined);
    assert.equal(state.size, 4 + 25 + 1);
  }
});

for (const [when, work] of [
  ["before", "beforePut"],
  ["after", "afterPut"],
] as const) {
  test(`reports an unknown outcome if others have pruned the version after a commit ${when} its put`, async (t) => {
    const world = await createWorld(t);
    world[work](() => world.othersGoOn(25, 20));
    const mutation = world.late.mutate((draft) => draft.put(table("ours")));
    await assert.rejects(mutation, failsWith("OutcomeUnknown"));
    for (const catalog of [world.open(), world.late]) {
      const { size } = await catalog.read();
      assert.equal(size, 4 + 25 + (when === "after" ? 1 : 0));
    }
  });
}

test("acknowledges a commit at once that others have built on while its answer was on its way", async (t) => {
  const { late, othersGoOn, afterPut, newest } = await createWorld(t);
  afterPut(() => othersGoOn(25, 25));
  await late.mutate((draft) => {
    if (draft.get("ours") !== undefined) throw new Error("it is decided again");
    draft.put(table("ours"));
  });
  assert.equal(await newest(), 5n + 1n + 25n);
  assert.equal((await late.read()).size, 4 + 1 + 25);
});
