import assert from "node:assert/strict";
import { test } from "vitest";
import { createUpkeepTallies } from "./background-tallies.ts";

test("a database that is open twice for a while has the counts of both, and one that closes takes nothing with it", () => {
  const tallies = createUpkeepTallies();
  const run = { seconds: 1, fragmentsRemoved: 2, versionsRemoved: 0, bytesRemoved: 0 };
  const running = tallies.of("red");
  running.watch(() => 3);
  running.done(run);
  // A change of the configuration that is taken back.
  const prepared = tallies.of("red");
  const close = prepared.watch(() => 4);
  prepared.done(run);
  assert.deepEqual([...tallies.waiting()], [{ labels: ["red"], value: 7 }]);
  close();
  running.done(run);
  assert.deepEqual([...tallies.waiting()], [{ labels: ["red"], value: 3 }]);
  assert.deepEqual([...tallies.sums("fragmentsRemoved")], [{ labels: ["red"], value: 6 }]);
  assert.deepEqual([...tallies.runs()], [{ labels: ["red", "done"], value: 3 }]);
});
