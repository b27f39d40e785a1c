import assert from "node:assert/strict";
import { describe, expect, test } from "vitest";
import { isLanceError } from "../../namespace/errors.ts";
import { createByteBudget } from "../../namespace/memory/byte-budget.ts";
import { openSharedMemory, watchBeats } from "./shared-memory.ts";

const SHAPE = { workers: 3, databases: 2 };

/** Opens the memory of three workers, each with a view of its own. */
function openViews() {
  const first = openSharedMemory(SHAPE);
  return [first, openSharedMemory(SHAPE, first.buffer), openSharedMemory(SHAPE, first.buffer)] as const;
}

describe("shared memory", () => {
  test("a worker sees the parts of the others and not its own", () => {
    const views = openViews();
    const parts = views.map((view, worker) => view.quantity(worker, "connections"));
    for (const [worker, part] of parts.entries()) part.publish(10 ** worker);
    assert.deepEqual(
      parts.map(({ others, largestOther }) => [others, largestOther]),
      [
        [110, 100],
        [101, 100],
        [11, 10],
      ],
    );
    const ofSupervisor = views[0].quantity(undefined, "connections");
    ofSupervisor.publish(1_000);
    assert.deepEqual([ofSupervisor.others, parts[0]?.others], [111, 110]);
  });

  test("quantities, databases and counters do not share cells", () => {
    const [one, two] = openViews();
    const quantities = (["calls", "tableUseMs"] as const).flatMap((name) =>
      [0, 1].map((database) =>
        [one, two].map((view, worker) => view.databaseQuantity(worker, database, name)),
      ),
    );
    for (const [index, [own]] of quantities.entries()) own?.publish(index + 1);
    one.counter(0, "catalogVersion").raise(7);
    one.counter(1, "upstreamWrites").increment();
    one.tableChanges(1).note("t");
    one.beat(0);
    assert.deepEqual(
      quantities.map(([, other]) => other?.others),
      [1, 2, 3, 4],
    );
    assert.equal(two.counter(0, "catalogVersion").value, 7);
    assert.equal(two.counter(1, "catalogVersion").value, 0);
    assert.equal(two.counter(1, "upstreamWrites").value, 1);
    assert.deepEqual([two.tableChanges(0).of("t"), two.tableChanges(1).of("t")], [0, 1]);
    assert.deepEqual([two.beatsOf(0), two.beatsOf(1)], [1, 0]);
  });

  test("the parts of a worker that has ended no longer count", () => {
    const [one, two] = openViews();
    one.quantity(0, "connections").publish(5);
    two.clear(0);
    assert.equal(two.quantity(1, "connections").others, 0);
  });

  test("a version is only raised", () => {
    const [one, two] = openViews();
    const version = one.counter(0, "catalogVersion");
    for (const next of [3, 2, 5]) version.raise(next);
    assert.equal(two.counter(0, "catalogVersion").value, 5);
  });

  test("a version beyond 32 bits stays the newest, as in a catalog of many years", () => {
    const [one, two] = openViews();
    const version = one.counter(1, "catalogVersion");
    for (const next of [2 ** 31 - 1, 2 ** 31, 2 ** 40, 3]) version.raise(next);
    assert.equal(two.counter(1, "catalogVersion").value, 2 ** 40);
  });

  test("budgets of all workers together never admit more than the bound", () => {
    const views = openViews();
    const budgets = views.map((view, worker) =>
      createByteBudget(10_240, view.quantity(worker, "bufferedBytes")),
    );
    const [one, two, three] = budgets.map((budget) => budget.open());
    one?.take(4_096);
    two?.take(4_096);
    assert.throws(
      () => three?.take(4_096),
      (error) => isLanceError(error, "Throttling"),
    );
    assert.equal(budgets[2]?.held, 0);
    one?.release();
    three?.take(4_096);
  });
});

test("a worker without beats is reported once, and one that beats is not", async (t) => {
  const memory = openSharedMemory({ workers: 3, databases: 1 });
  const blocked: number[] = [];
  const beats = setInterval(() => memory.beat(1), 1);
  const watch = watchBeats(memory, 200, (worker) => blocked.push(worker));
  t.onTestFinished(() => {
    clearInterval(beats);
    watch.close();
  });
  for (const worker of [0, 1, 2]) watch.begin(worker, false);
  watch.end(2);
  await expect.poll(() => blocked).toEqual([0]);
  watch.begin(0, true);
  await expect.poll(() => blocked).toEqual([0, 0]);
  assert.ok(!blocked.includes(1));
});
