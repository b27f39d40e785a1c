import assert from "node:assert/strict";
import { test } from "vitest";
import { openBaseDirectory, table } from "../../../../../test/fixtures/catalog/catalog.ts";
import type { Steps } from "../../../../runtime/pace.ts";
import { MAX_ROWS_AT_ONCE } from "../manifest/reader.ts";
import { createDraft, type Draft } from "../state/draft.ts";
import { walkTables } from "../walk.ts";

const MANY = MAX_ROWS_AT_ONCE + 1;
const names = Array.from({ length: MANY }, (_, i) => `t${String(i).padStart(5, "0")}`);

function* putAll(draft: Draft): Steps<number> {
  for (const name of names) draft.put(table(name));
  yield;
  return names.length;
}

test("reads the catalog again in steps instead of applying many rows at once", async (t) => {
  const { manifestTable, open } = await openBaseDirectory(t);
  const manifest = manifestTable();
  let reads = 0;
  const catalog = open({
    ...manifest,
    read(version) {
      reads++;
      return manifest.read(version);
    },
  });
  const other = open();
  await catalog.mutate((draft) => draft.put(table("first")));
  await other.read();
  reads = 0;
  assert.equal(await catalog.mutate(putAll), MANY);
  assert.equal(reads, 1);
  assert.deepEqual((await catalog.read()).children("", "table", "", MANY + 2), ["first", ...names]);
  assert.equal((await other.read()).size, MANY + 1);
  await catalog.mutate((draft) => draft.delete("first"));
  assert.equal(reads, 1, "a small change is applied");
  assert.equal((await other.read()).get("first"), undefined);
});

test("decides a long change again on the newest state if that arrives between its steps", async (t) => {
  const { open } = await openBaseDirectory(t);
  const [catalog, other] = [open(), open()];
  await catalog.mutate((draft) => draft.put(table("a")));
  let [runs, arrived] = [0, false];
  function* slow(draft: Draft): Steps<boolean> {
    runs++;
    const before = draft.get("b") !== undefined;
    while (!arrived) yield;
    assert.equal(draft.get("b") !== undefined, before, "a run sees a single state");
    draft.put(table("c"));
    return before;
  }
  const changed = catalog.mutate(slow);
  await other.mutate((draft) => draft.put(table("b")));
  // A reader brings the state to the commit of the other process while the change is paused.
  assert.ok((await catalog.read()).get("b"));
  arrived = true;
  assert.equal(await changed, true);
  assert.equal(runs, 2);
  assert.deepEqual((await other.read()).children("", "table", "", 9), ["a", "b", "c"]);
});

test("finds the locations inside a directory without looking at the others", async (t) => {
  const { open } = await openBaseDirectory(t);
  const catalog = open();
  const nested = Array.from({ length: 300 }, (_, i) => ({ ...table(`n${i}`), location: `a/${i}` }));
  await catalog.mutate((draft) => {
    for (const row of nested) draft.put(row);
    assert.equal([...draft.locationsInside("a")].length, 300);
    assert.deepEqual([...draft.locationsInside("a/7")], []);
    draft.put({ ...table("deep"), location: "a/7/x" });
    assert.deepEqual([...draft.locationsInside("a/7")], ["a/7/x"]);
    draft.delete("deep");
    assert.deepEqual([...draft.locationsInside("a/7")], []);
  });
  const state = await catalog.read();
  assert.equal([...state.locationsInside("a")].length, 300);
  let looks = 0;
  const draft = createDraft({
    ...state,
    ownerOf(location) {
      looks++;
      return state.ownerOf(location);
    },
  });
  assert.deepEqual([...draft.locationsInside("b")], []);
  assert.deepEqual([...draft.locationsInside("a/7")], []);
  assert.equal(looks, 0);
});

test("a walk over the tables lets other work run", async (t) => {
  const { open } = await openBaseDirectory(t);
  const catalog = open();
  await catalog.mutate(putAll);
  let [seen, turned] = [0, false];
  for await (const _ of walkTables(catalog)) {
    // Longer than any stretch of work without a pause.
    for (const start = performance.now(); seen === 0 && performance.now() - start < 20; );
    if (seen++ === 0) {
      setImmediate(() => {
        turned = true;
      });
    }
    if (turned) break;
  }
  assert.ok(turned && seen < MANY, `no other work ran during ${seen} tables`);
});

test("mutations that change nothing let other work run, however many there are", async (t) => {
  const { open } = await openBaseDirectory(t);
  const catalog = open();
  await catalog.mutate((draft) => draft.put(table("a")));
  let turned = false;
  setImmediate(() => {
    turned = true;
  });
  const look = () =>
    catalog.mutate((draft) => {
      // Longer than any stretch of work without a pause.
      for (const start = performance.now(); !turned && performance.now() - start < 20; );
      return draft.get("a") !== undefined;
    });
  for (let i = 0; i < 3; i++) assert.ok(await look());
  assert.ok(turned);
});
