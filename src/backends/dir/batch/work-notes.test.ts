import assert from "node:assert/strict";
import { readdir, rm, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "vitest";
import { ended } from "../../../../test/fixtures/dir/batch.ts";
import { temporaryDirectory } from "../../../../test/fixtures/dir/directory-backend.ts";
import { createLocalStore } from "../format/local/local-store.ts";
import { THIS_PROCESS } from "../ownership/owner.ts";
import { createWorkNotes, WORK_DIRECTORY } from "./work-notes.ts";

/** The notes of a directory, by a clock that a test can put forward. */
async function openNotes(t: TestContext) {
  const base = await temporaryDirectory(t);
  let ahead = 0;
  const clock = { now: async () => Date.now() + ahead };
  const notes = createWorkNotes("", createLocalStore(base), clock);
  const directory = join(base, WORK_DIRECTORY);
  const names = () => readdir(directory);
  return {
    directory,
    notes,
    names,
    wait: (milliseconds: number) => {
      ahead += milliseconds;
    },
    /** Gives a sign of the only note, at the present time. */
    async sign() {
      const [name = ""] = await names();
      await writeFile(join(directory, `${name}.alive`), "");
      const now = new Date(Date.now() + ahead);
      await utimes(join(directory, `${name}.alive`), now, now);
    },
    /** Makes the only note that of another process. */
    async give(content: object | string) {
      const [name = ""] = await names();
      await writeFile(
        join(directory, name.replace(/^(\w+)-.*/, "$1-other")),
        typeof content === "string" ? content : JSON.stringify(content),
      );
    },
  };
}

/** A process of which this one cannot tell whether it has ended. */
const elsewhere = { ...THIS_PROCESS, process: "other", kernel: "of another machine" };

test("a location is at work until all work there has ended", async (t) => {
  const { notes, names } = await openNotes(t);
  assert.equal(await notes.isAtWork("t.lance"), false);
  const [first, second] = [await notes.begin("t.lance"), await notes.begin("t.lance")];
  assert.deepEqual([await notes.isAtWork("t.lance"), await notes.isAtWork("t.lance2")], [true, false]);
  await first();
  assert.equal(await notes.isAtWork("t.lance"), true);
  await second();
  assert.equal(await notes.isAtWork("t.lance"), false);
  assert.deepEqual(await names(), []);
});

test("the note of another process counts for a day, or until the process has ended", async (t) => {
  const { notes, wait, give } = await openNotes(t);
  const end = await notes.begin("t.lance");
  await give(elsewhere);
  await end();
  assert.equal(await notes.isAtWork("t.lance"), true);
  assert.deepEqual(await notes.stale(), []);
  wait(23 * 60 * 60 * 1000);
  assert.equal(await notes.isAtWork("t.lance"), true);
  wait(2 * 60 * 60 * 1000);
  assert.equal(await notes.isAtWork("t.lance"), false);
  assert.equal((await notes.stale()).length, 1);
});

test("work of another process counts as going on for ten minutes after its last sign", async (t) => {
  const { directory, notes, names, wait, give, sign } = await openNotes(t);
  const end = await notes.begin("t.lance");
  assert.equal(await notes.isOtherAtWork("t.lance"), false);
  await give(elsewhere);
  await end();
  assert.equal(await notes.isOtherAtWork("t.lance"), true);
  wait(11 * 60_000);
  assert.equal(await notes.isOtherAtWork("t.lance"), false);
  await sign();
  assert.equal(await notes.isOtherAtWork("t.lance"), true);
  wait(11 * 60_000);
  assert.deepEqual([await notes.isOtherAtWork("t.lance"), await notes.isAtWork("t.lance")], [false, true]);
  assert.deepEqual(await notes.stale(), []);
  wait(24 * 60 * 60_000);
  assert.equal((await notes.stale()).length, 1);
  await rm(join(directory, (await names()).find((name) => !name.endsWith(".alive")) ?? ""));
  assert.equal((await notes.stale()).length, 1, "a sign without a note");
});

test("the note of a process that has ended, or that a loss of power has emptied, does not count", async (t) => {
  for (const content of [{ ...ended, process: "ended" }, ""]) {
    const { notes, give } = await openNotes(t);
    const end = await notes.begin("t.lance");
    await give(content);
    await end();
    assert.equal(await notes.isAtWork("t.lance"), false);
    assert.equal((await notes.stale()).length, 1);
  }
});
