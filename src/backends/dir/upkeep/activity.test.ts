import assert from "node:assert/strict";
import { test } from "vitest";
import { type ActiveTable, createActivity, MAX_ACTIVE, MAX_TAKEN, UPKEEP_TIMES } from "./activity.ts";

const TIMES = { ...UPKEEP_TIMES, settleMs: 500, waitMs: 2_000, retryMs: 1_000, maxRetryMs: 3_000 };
const only = (tables: readonly ActiveTable[]): ActiveTable => {
  assert.equal(tables.length, 1);
  return tables[0] as ActiveTable;
};

test("a burst of writes is followed by a single inspection", () => {
  const activity = createActivity(TIMES);
  for (let now = 0; now < 400; now += 10) activity.note(["t"], now);
  assert.deepEqual(activity.takeDue(600), []);
  const table = only(activity.takeDue(900));
  activity.end(table, { restMs: 0, againMs: undefined }, 950);
  assert.deepEqual(activity.takeDue(100_000), []);
  assert.equal(activity.waiting, 0);
});

test("writes that never pause are inspected, too", () => {
  const activity = createActivity(TIMES);
  for (let now = 0; now <= 1_990; now += 10) {
    activity.note(["t"], now);
    assert.deepEqual(activity.takeDue(now), []);
  }
  only(activity.takeDue(2_000));
});

test("a table is not taken again while it is worked on, and rests after the work", () => {
  const activity = createActivity(TIMES);
  activity.note(["t"], 0);
  const table = only(activity.takeDue(500));
  activity.note(["t"], 600);
  assert.deepEqual(activity.takeDue(2_000), []);
  activity.end(table, { restMs: 9_000, againMs: undefined }, 2_000);
  assert.deepEqual(activity.takeDue(10_900), []);
  only(activity.takeDue(11_000));
});

test("a failure is tried again after a pause that doubles up to a limit", () => {
  const activity = createActivity(TIMES);
  activity.note(["t"], 0);
  let now = 500;
  for (const pause of [1_000, 2_000, 3_000, 3_000]) {
    activity.end(only(activity.takeDue(now)), undefined, now);
    assert.deepEqual(activity.takeDue(now + pause - 1), []);
    now += pause;
  }
  activity.end(only(activity.takeDue(now)), { restMs: 0, againMs: 10 }, now);
  only(activity.takeDue(now + 10));
});

test("the table that waited longest is taken first", () => {
  const activity = createActivity(TIMES);
  activity.note(["late"], 100);
  activity.note(["early"], 0);
  assert.deepEqual(
    activity.takeDue(1_000).map(({ id }) => id),
    [["early"], ["late"]],
  );
});

test("a table that does not exist is forgotten, unless it was written to meanwhile", () => {
  const activity = createActivity(TIMES);
  const gone = { restMs: 0, againMs: undefined, isGone: true };
  activity.note(["t"], 0);
  const table = only(activity.takeDue(500));
  activity.note(["t"], 600);
  activity.end(table, gone, 700);
  assert.equal(activity.has(["t"]), true);
  activity.end(only(activity.takeDue(2_000)), gone, 2_000);
  assert.equal(activity.has(["t"]), false);
});

test("any number of names takes bounded memory, and the tables written to last are remembered", () => {
  const activity = createActivity(TIMES);
  activity.note(["kept"], 0);
  const idle = ["idle"];
  activity.note(idle, 0);
  for (const table of activity.takeDue(500))
    activity.end(table, { restMs: 0, againMs: table.id[0] === "idle" ? undefined : 0 }, 500);
  let forgotten = 0;
  for (let at = 0; at < 2 * MAX_ACTIVE; at += 1) {
    if (at === MAX_ACTIVE - 2) assert.equal(forgotten, 0);
    if (activity.note([`t${at}`], 600 + at / 1_000)) forgotten += 1;
    if (at % 100 === 0) activity.note(["kept"], 600 + at / 1_000);
  }
  assert.equal(activity.waiting, MAX_ACTIVE);
  assert.equal(forgotten, MAX_ACTIVE + 1);
  assert.deepEqual(
    ["kept", "idle", "t0", `t${2 * MAX_ACTIVE - 1}`].map((name) => activity.has([name])),
    [true, false, false, true],
  );
});

test("tables that are worked on are bounded, and never forgotten", () => {
  const activity = createActivity(TIMES);
  for (let at = 0; at < MAX_ACTIVE; at += 1) activity.note([`t${at}`], 0);
  const first = activity.takeDue(500);
  assert.equal(first.length, MAX_TAKEN);
  assert.deepEqual(activity.takeDue(500), []);
  for (let at = 0; at < MAX_ACTIVE; at += 1) activity.note([`u${at}`], 600);
  assert.equal(activity.waiting, MAX_ACTIVE);
  const [table, ...others] = first as [ActiveTable, ...ActiveTable[]];
  for (const { id } of first) assert.ok(activity.has(id));
  assert.deepEqual(activity.takeDue(2_000), []);
  activity.note(table.id, 2_000);
  activity.end(table, { restMs: 0, againMs: undefined, isGone: true }, 2_000);
  assert.ok(activity.has(table.id));
  for (const other of others) activity.end(other, undefined, 2_000);
  assert.equal(activity.takeDue(2_500).length, MAX_TAKEN);
});
