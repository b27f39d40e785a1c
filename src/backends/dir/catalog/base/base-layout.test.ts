import assert from "node:assert/strict";
import { basename } from "node:path";
import { type TestContext, test } from "vitest";
import { temporaryDirectory } from "../../../../../test/fixtures/dir/directory-backend.ts";
import { createDiskBucket } from "../../../../../test/support/disk-bucket.ts";
import { UnsyncedError } from "../../format/local/local-errors.ts";
import { createLocalStore } from "../../format/local/local-store.ts";
import { keyIn, listNames, type ObjectStore } from "../../format/storage.ts";
import { createRemoteStore } from "../../stores/remote-store.ts";
import { createLayout } from "./base-layout.ts";

const disk = createLocalStore();

/** Puts a directory `t` aside and removes it, while it becomes that of another table just before its first rename. */
async function removeWhileCreated(t: TestContext, beforeReturn: (key: string) => Promise<void>) {
  const base = disk.keyOf(await temporaryDirectory(t));
  const key = keyIn(base, "t");
  let isCreated = false;
  const moveDirectory = async (from: string, to: string) => {
    if (from === key && !isCreated) {
      isCreated = true;
      await disk.delete(`${key}/.lance-deregistered`);
      await disk.put(`${key}/data/0.lance`, Buffer.from("of another table"));
    }
    if (to === key) await beforeReturn(key);
    return disk.files?.moveDirectory(from, to) ?? false;
  };
  const store = { ...disk, files: { ...disk.files, moveDirectory } } as ObjectStore;
  const layout = createLayout(store, base);
  await disk.put(`${key}/data/0.lance`, Buffer.from("of a dropped table"));
  await layout.putAside("t", "drop");
  return { base, key, removal: layout.removePutAside("t", "drop", async () => false) };
}

test("a directory that has become another table's goes back to its place", async (t) => {
  const { base, removal } = await removeWhileCreated(t, async () => {});
  assert.equal(await removal, false);
  assert.deepEqual(await listNames(disk, base), ["t"]);
});

test("a directory whose place is taken meanwhile keeps a name that gc leaves alone", async (t) => {
  const { base, removal } = await removeWhileCreated(t, (key) =>
    disk.put(`${key}/data/0.lance`, Buffer.from("of a third")),
  );
  await assert.rejects(removal, /the directory of another table is at .*\.aside-[0-9a-f]{16}$/);
  const [kept, ...rest] = await listNames(disk, base);
  assert.match(basename(kept ?? ""), /^\.aside-/);
  assert.deepEqual(rest, ["t"]);
  assert.equal(String(await disk.get(`${keyIn(base, kept ?? "")}/data/0.lance`)), "of another table");
});

test("a change does not remove a directory that another one has put aside", async (t) => {
  const base = disk.keyOf(await temporaryDirectory(t));
  const layout = createLayout(disk, base);
  await disk.put(keyIn(base, "t/data/0.lance"), Buffer.from("of a deregistered table"));
  await layout.setDeregistered("t", true, async () => false);
  assert.equal(await layout.removePutAside("t", "one", async () => false), false);
  await layout.putAside("t", "one");
  await layout.putAside("t", "two");
  assert.equal(await layout.removePutAside("t", "three", async () => false), false);
  assert.equal(await layout.removePutAside("t", "one", async () => false), true);
  assert.deepEqual(await listNames(disk, base), []);
});

test("a directory that a process leaves in the middle of its removal is removed by the next one", async (t) => {
  const base = disk.keyOf(await temporaryDirectory(t));
  const moveDirectory = async (from: string, to: string) => {
    if (basename(to).startsWith(".dropped-")) throw new Error("the process ends here");
    return disk.files?.moveDirectory(from, to) ?? false;
  };
  const ending = createLayout({ ...disk, files: { ...disk.files, moveDirectory } } as ObjectStore, base);
  await disk.put(keyIn(base, "t/data/0.lance"), Buffer.from("of a dropped table"));
  await ending.putAside("t", "drop");
  await assert.rejects(
    ending.removePutAside("t", "drop", async () => true),
    /ends here/,
  );
  await disk.put(keyIn(base, "t/data/0.lance"), Buffer.from("of the next table"));
  const layout = createLayout(disk, base);
  await layout.completeRemoval("t", "another drop");
  assert.equal((await listNames(disk, base)).length, 2);
  await layout.completeRemoval("t", "drop");
  assert.deepEqual(await listNames(disk, base), ["t"]);
});

test("a drop does not mark the place of a directory that another drop removes at that moment", async (t) => {
  const base = disk.keyOf(await temporaryDirectory(t));
  const layout = createLayout(disk, base);
  await disk.put(keyIn(base, "t/data/0.lance"), Buffer.from("of a dropped table"));
  await layout.putAside("t", "one");
  const replace: ObjectStore["replace"] = async (...args) => {
    await layout.removePutAside("t", "one", async () => true);
    return disk.replace(...args);
  };
  await createLayout({ ...disk, replace }, base).putAside("t", "two");
  assert.equal(await layout.claim("t", "next"), true);
});

test("a claim that is given back leaves what another program puts there at that moment", async (t) => {
  const base = disk.keyOf(await temporaryDirectory(t));
  const key = keyIn(base, "t.lance");
  const moveDirectory = async (from: string, to: string) => {
    if (from === key) await disk.put(`${key}/data/0.lance`, Buffer.from("of another program"));
    return disk.files?.moveDirectory(from, to) ?? false;
  };
  const layout = createLayout({ ...disk, files: { ...disk.files, moveDirectory } } as ObjectStore, base);
  await createLayout(disk, base).claim("t.lance", "one");
  await layout.unclaim("t.lance", "one");
  assert.equal(String(await disk.get(`${key}/data/0.lance`)), "of another program");
});

test("a change leaves no mark where another one removes the directory just before the first mark", async (t) => {
  const base = disk.keyOf(await temporaryDirectory(t));
  const layout = createLayout(disk, base);
  await disk.put(keyIn(base, "t/data/0.lance"), Buffer.from("of a dropped table"));
  const putIfAbsent: ObjectStore["putIfAbsent"] = async (...args) => {
    await layout.remove("t");
    return disk.putIfAbsent(...args);
  };
  await createLayout({ ...disk, putIfAbsent }, base).putAside("t", "two");
  assert.equal(await layout.claim("t", "next"), true);
});

for (const [kind, store] of [
  ["disk", disk],
  ["bucket", createRemoteStore(createDiskBucket(disk))],
] as const)
  test(`a drop that found no directory on a ${kind} does not remove the claim of the next table`, async (t) => {
    const base = disk.keyOf(await temporaryDirectory(t));
    const layout = createLayout(store, base);
    for (const location of ["t.lance", "chosen"]) {
      await layout.putAside(location, "drop");
      assert.equal(await layout.claim(location, "next"), true);
      await layout.removePutAside(location, "drop", async () => true);
      assert.equal(await layout.unclaim(location, "next"), true);
    }
  });

test("a directory that contains other tables is not listed to find out whether it is one", async (t) => {
  const base = disk.keyOf(await temporaryDirectory(t));
  const listed: string[] = [];
  const list: ObjectStore["list"] = (directory) => {
    listed.push(directory);
    return disk.list(directory);
  };
  const layout = createLayout({ ...disk, list }, base);
  await disk.put(keyIn(base, "lake/t/rows"), Buffer.from("of a table"));
  assert.equal(await layout.dataState("lake"), "lost");
  assert.ok(!listed.includes(keyIn(base, "lake")));
  await layout.reserve("lake");
  assert.equal(await layout.dataState("lake"), "declared");
});

test("a mark that a disk may not keep does not count", async (t) => {
  const base = disk.keyOf(await temporaryDirectory(t));
  await disk.put(keyIn(base, "t/data/0.lance"), Buffer.from("of a table"));
  const putIfAbsent: ObjectStore["putIfAbsent"] = async (...args) => {
    await disk.putIfAbsent(...args);
    throw new UnsyncedError(new Error("the disk fails"));
  };
  const marked = createLayout({ ...disk, putIfAbsent }, base).putAside("t", "drop");
  await assert.rejects(marked, UnsyncedError);
});

test("a declaration of a bucket that shows its directory leaves the mark of a change that is in flight", async (t) => {
  const base = disk.keyOf(await temporaryDirectory(t));
  const plain = createDiskBucket(disk);
  const layout = createLayout(createRemoteStore(plain), base);
  await layout.claim("t.lance", "declared");
  const copy: typeof plain.copy = async (...args) => {
    await plain.copy(...args);
    await layout.putAside("t.lance", "drop");
  };
  const shown = createLayout(createRemoteStore({ ...plain, copy }), base).reveal("t.lance", "declared");
  assert.equal(await shown, false);
  assert.equal(await layout.isPutAside("t.lance", "drop"), true);
});

test("two changes put a table of a bucket aside, although the answer to the first mark is lost", async (t) => {
  const base = disk.keyOf(await temporaryDirectory(t));
  const plain = createDiskBucket(disk);
  const layout = createLayout(createRemoteStore(plain), base);
  await disk.put(keyIn(base, "t/data/0.lance"), Buffer.from("of a table"));
  await layout.putAside("t", "one");
  let isLost = false;
  const replace: typeof plain.replace = async (...args) => {
    const outcome = await plain.replace(...args);
    if (isLost) return outcome;
    isLost = true;
    await layout.putAside("t", "three");
    return { unclear: new Error("no answer") };
  };
  await createLayout(createRemoteStore({ ...plain, replace }), base).putAside("t", "two");
  for (const change of ["one", "two", "three"]) assert.equal(await layout.isPutAside("t", change), true);
});
