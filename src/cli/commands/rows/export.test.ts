import assert from "node:assert/strict";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "vitest";
import { temporaryDirectory } from "../../../../test/fixtures/dir/directory-backend.ts";
import { people, personStream } from "../../../../test/support/arrow.ts";
import { placeNew, saveRows } from "./export.ts";

/** Yields rows, and does some work before the last piece. */
async function* rowsAnd(work: () => Promise<void>): AsyncGenerator<Uint8Array> {
  const bytes = personStream(people(3));
  yield bytes.subarray(0, 64);
  await work();
  yield bytes.subarray(64);
}

test("an export does not replace a file that appears while it runs, unless it is forced", async (t) => {
  const directory = await temporaryDirectory(t);
  const file = join(directory, "rows.csv");
  const save = (force: boolean) =>
    saveRows(
      rowsAnd(() => writeFile(file, "mine")),
      { file, force, label: "t" },
    );
  await assert.rejects(save(false), { message: `${file} exists; --force replaces it` });
  assert.equal(await readFile(file, "utf8"), "mine");
  assert.deepEqual(await readdir(directory), ["rows.csv"]);
  await save(true);
  assert.match(await readFile(file, "utf8"), /^id,/);
  assert.deepEqual(await readdir(directory), ["rows.csv"]);
});

test("of several exports into one file at the same time, one writes it and the others are refused", async (t) => {
  const directory = await temporaryDirectory(t);
  const file = join(directory, "rows.csv");
  const all = Promise.withResolvers<void>();
  let begun = 0;
  const work = async () => {
    begun += 1;
    if (begun === 4) all.resolve();
    await all.promise;
  };
  const outcomes = await Promise.allSettled(
    [1, 2, 3, 4].map((n) => saveRows(rowsAnd(work), { file, force: false, label: `t${n}` })),
  );
  const refusals = outcomes.flatMap((each) => (each.status === "rejected" ? [each.reason.message] : []));
  assert.deepEqual(refusals, Array(3).fill(`${file} exists; --force replaces it`));
  assert.match(await readFile(file, "utf8"), /^id,/);
  assert.deepEqual(await readdir(directory), ["rows.csv"]);
});

test("a file system without hard links does not replace a file either", async (t) => {
  const directory = await temporaryDirectory(t);
  const [part, file] = [join(directory, "part"), join(directory, "rows.csv")];
  const noLinks = async () => {
    throw Object.assign(new Error("operation not permitted"), { code: "EPERM" });
  };
  await writeFile(part, "new");
  await placeNew(part, file, noLinks);
  assert.deepEqual([await readFile(file, "utf8"), await readdir(directory)], ["new", ["rows.csv"]]);
  await writeFile(part, "newer");
  await assert.rejects(placeNew(part, file, noLinks), { code: "EEXIST" });
  assert.equal(await readFile(file, "utf8"), "new");
});
