import assert from "node:assert/strict";
import { expect, test } from "vitest";
import { table } from "../../../../../test/fixtures/catalog/catalog.ts";
import { declare, openWorkers } from "../../../../../test/fixtures/catalog/workers.ts";
import type { Steps } from "../../../../runtime/pace.ts";
import type { Catalog } from "../catalog.ts";
import { MAX_ROWS_AT_ONCE } from "../manifest/reader.ts";
import type { Draft } from "../state/draft.ts";

/** More rows than a worker takes over in place. */
const MANY = MAX_ROWS_AT_ONCE + 1_000;
const MIB = 1024 * 1024;

/** Adds numbered tables of 300 bytes each. */
const putMany = (catalog: Catalog, prefix: string, count = MANY): Promise<void> =>
  catalog.mutate(function* (draft: Draft): Steps<void> {
    for (let number = 0; number < count; number++) {
      draft.put(table(`${prefix}${number}`, { text: "x".repeat(300) }));
      if (number % 500 === 0) yield;
    }
  });

const ownMiB = (catalog: Catalog) => catalog.known().ownBytes / MIB;

test("rows that another process has added are read by the first worker alone", async (t) => {
  const { catalogs, other, reads } = await openWorkers(t, 3);
  const foreign = other();
  await putMany(foreign, "t");
  const states = await Promise.all(catalogs.map((catalog) => catalog.read()));
  for (const state of states) {
    assert.equal(state.size, MANY + 1);
    assert.equal(state.get("t7")?.properties["text"]?.length, 300);
  }
  assert.deepEqual(reads, [0]);
  const [first, second, third] = catalogs;
  assert.ok(ownMiB(first) > 3, "it has the rows");
  for (const worker of [second, third]) assert.ok(ownMiB(worker) < 1, `${ownMiB(worker)} MiB`);
  // From here on, each changes its own copy.
  await second.mutate((draft) => draft.delete("t7"));
  await third.mutate((draft) => draft.put(table("t8", { changed: "yes" })));
  await foreign.mutate((draft) => draft.put(table("later")));
  for (const catalog of catalogs) {
    const state = await catalog.read();
    assert.deepEqual([state.size, state.get("t7")], [MANY + 1, undefined]);
    assert.deepEqual(state.get("t8")?.properties, { changed: "yes" });
  }
});

test("a worker without a first one reads the storage, and shares the memory of the next first one", async (t) => {
  const { catalogs, other, disconnect, replaceFirst, reads } = await openWorkers(t, 3);
  const [, second] = catalogs;
  disconnect();
  await putMany(other(), "t");
  assert.equal((await second.read()).size, MANY + 1);
  assert.deepEqual(reads, [1]);
  assert.ok(ownMiB(second) > 3);
  const first = replaceFirst();
  await expect.poll(() => ownMiB(second)).toBeLessThan(1);
  assert.deepEqual(reads, [1, 0]);
  await first.mutate((draft) => draft.delete("t7"));
  assert.equal((await second.read()).get("t7"), undefined);
  assert.equal((await second.read()).size, MANY);
});

test("a worker takes over the memory of the first one again when changes have taken much of its own", async (t) => {
  const { catalogs } = await openWorkers(t, 2);
  const [first, second] = catalogs;
  for (let round = 0; round < 20; round++) {
    await putMany(first, `r${round}-`, 500);
    assert.equal((await second.read()).size, 1 + 500 * (round + 1));
  }
  assert.ok(ownMiB(first) > 3);
  let later = 0;
  await expect
    .poll(async () => {
      await declare(first, `later${later++}`);
      await second.read();
      return ownMiB(second);
    })
    .toBeLessThan(2.5);
  assert.equal((await second.read()).size, 1 + 500 * 20 + later);
});

test("a version that is not the stored one is not taken over", async (t) => {
  const { catalogs, other, reads } = await openWorkers(t, 2, (manifest) => ({
    async read(...args) {
      const state = await manifest.read(...args);
      state.facts = { ...state.facts, transaction: "another history" };
      return state;
    },
  }));
  await putMany(other(), "t");
  assert.equal((await catalogs[1].read()).size, MANY + 1);
  assert.deepEqual(reads, [0, 1]);
});

test("a worker reads the storage itself if the first one cannot", async (t) => {
  let isBroken = false;
  const { catalogs, other, reads } = await openWorkers(t, 2, (manifest) => ({
    async head() {
      if (isBroken) throw new Error("the storage is away");
      return manifest.head();
    },
  }));
  isBroken = true;
  await putMany(other(), "t");
  assert.equal((await catalogs[1].read()).size, MANY + 1);
  assert.deepEqual(reads, [1]);
});
