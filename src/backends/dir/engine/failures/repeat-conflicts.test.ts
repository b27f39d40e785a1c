import assert from "node:assert/strict";
import { test } from "vitest";
import { failsWith } from "../../../../../test/fixtures/dir/directory-backend.ts";
import type { ErrorName } from "../../../../namespace/errors.ts";
import { repeatConflicts } from "./errors.ts";

const conflict = () => new Error("lance error: Retryable commit conflict for version 7");

function makeTable() {
  const table = { moves: 0, checkoutLatest: async () => void table.moves++ };
  return table;
}

test("repeats a change on the newest version while others commit first", async () => {
  const table = makeTable();
  let attempts = 0;
  const work = async () => {
    if (++attempts < 4) throw conflict();
    return "done";
  };
  assert.equal(await repeatConflicts(table, work, () => true), "done");
  assert.deepEqual([attempts, table.moves], [4, 3]);
});

test("gives up after ten attempts, at once when nobody waits, and at once for other failures", async () => {
  const attemptsOf = async (work: () => Promise<never>, isWanted: () => boolean, name: ErrorName) => {
    let attempts = 0;
    const counted = () => {
      attempts++;
      return work();
    };
    await assert.rejects(repeatConflicts(makeTable(), counted, isWanted), failsWith(name));
    return attempts;
  };
  const lost = async () => Promise.reject(conflict());
  const broken = async () => Promise.reject(new Error("broken"));
  assert.equal(await attemptsOf(lost, () => true, "ConcurrentModification"), 10);
  assert.equal(await attemptsOf(lost, () => false, "ConcurrentModification"), 1);
  assert.equal(await attemptsOf(broken, () => true, "Internal"), 1);
});
