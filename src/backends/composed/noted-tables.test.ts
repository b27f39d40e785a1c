import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { type TestContext, test } from "vitest";
import { createNotedTables } from "./noted-tables.ts";

/** Opens the record of each of three workers. */
function openWorkers(t: TestContext, most = 10) {
  const shared = randomUUID();
  const open = () => {
    const tables = createNotedTables({ most, shared, workers: 3 });
    t.onTestFinished(() => tables.close());
    return tables;
  };
  return { all: [open(), open(), open()] as const, open };
}

test("a list has the tables of other workers that were noted just before", async (t) => {
  const [one, two, three] = openWorkers(t).all;
  one.note(["n", "a"]);
  two.note(["n", "b"]);
  assert.deepEqual((await three.all()).toSorted(), [
    ["n", "a"],
    ["n", "b"],
  ]);
});

test("tables outlive the worker that has noted them, for a worker that replaces it, too", async (t) => {
  const { all, open } = openWorkers(t);
  const [one, two] = all;
  one.note(["a"]);
  await two.all();
  one.close();
  assert.deepEqual(await open().all(), [["a"]]);
});

test("a worker that does not answer does not hold a list up for long", async (t) => {
  const [one, two, three] = openWorkers(t).all;
  two.close();
  three.note(["a"]);
  const started = performance.now();
  assert.deepEqual(await one.all(), [["a"]]);
  assert.ok(performance.now() - started < 10_000);
});

test("the newest tables take the place of the oldest", async (t) => {
  const [one] = openWorkers(t, 2).all;
  for (const name of ["a", "b", "c"]) one.note([name]);
  assert.deepEqual(await one.all(), [["b"], ["c"]]);
  const alone = createNotedTables({ most: 2 });
  alone.note(["a"]);
  assert.deepEqual(await alone.all(), [["a"]]);
});
