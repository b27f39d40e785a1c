import assert from "node:assert/strict";
import fc from "fast-check";
import { test } from "vitest";
import { anId, check, someRows } from "../../../../../test/fixtures/catalog/state.ts";
import { atOnce } from "../../../../runtime/pace.ts";
import { createDraft } from "./draft.ts";
import { createMemory } from "./memory.ts";
import { compareNames, parentId, type Row } from "./row.ts";
import { type RowAddress, toBatch } from "./rows/stored-row.ts";
import { type CatalogState, createState, createStateBuilder } from "./state.ts";

test("contains exactly its rows after any changes", () => {
  fc.assert(
    fc.property(
      someRows,
      fc.array(fc.tuple(someRows, fc.array(anId, { maxLength: 4 })), { maxLength: 5 }),
      (first, steps) => {
        const state = createState(first);
        const model = new Map(first.map((row) => [row.objectId, row]));
        check(state, model);
        for (const [put, removed] of steps) {
          const changes = new Map<string, Row | undefined>(put.map((row) => [row.objectId, row]));
          for (const id of removed) changes.set(id, undefined);
          state.apply(changes);
          for (const [id, row] of changes) row === undefined ? model.delete(id) : model.set(id, row);
          check(state, model);
        }
      },
    ),
    { numRuns: 150 },
  );
});

test("shows in a draft what the state shows once its changes are applied", () => {
  fc.assert(
    fc.property(someRows, someRows, fc.array(anId, { maxLength: 6 }), (first, put, removed) => {
      const state = createState(first);
      const draft = createDraft(state);
      for (const row of put) draft.put(row);
      for (const id of removed) draft.delete(id);
      const applied = createState([...first]);
      applied.apply(draft.changes);
      for (const id of new Set([...first, ...put].flatMap((row) => [row.objectId, parentId(row.objectId)]))) {
        assert.deepEqual(draft.get(id), applied.get(id));
        assert.deepEqual([...draft.descendants(id)].sort(), [...applied.descendants(id)].sort());
        assert.equal(draft.hasChildren(id), applied.hasChildren(id), `children of ${id}`);
      }
      // A location has a single owner, which is decided before a row is put.
      const used = [...first, ...put].map((row) => row.location);
      const single = used.filter((one) => used.indexOf(one) === used.lastIndexOf(one));
      for (const location of single) {
        if (location !== undefined) assert.equal(draft.ownerOf(location), applied.ownerOf(location));
      }
      for (const directory of ["n", "é", "nowhere"]) {
        const [inside, expected] = [draft, applied].map((view) =>
          [...view.locationsInside(directory)].filter((location) => single.includes(location)),
        );
        assert.deepEqual(inside, expected, `inside ${directory}`);
      }
    }),
    { numRuns: 150 },
  );
});

/** A table in fragments: the rows of each by offset, undefined where a row was deleted. */
type Fragments = Map<number, (Row | undefined)[]>;

function stateOf(fragments: Fragments): CatalogState {
  const builder = createStateBuilder();
  for (const [fragment, rows] of fragments) atOnce(builder.add(batchOf(fragment, rows)));
  return atOnce(builder.finish());
}

function batchOf(fragment: number, rows: readonly (Row | undefined)[]) {
  const there = [...rows.entries()].filter(([, row]) => row !== undefined) as [number, Row][];
  const addresses = Uint32Array.from(there.flatMap(([offset]) => [offset, fragment]));
  return toBatch(
    there.map(([, row]) => row),
    addresses,
  );
}

function addressesOf(fragments: Fragments): Map<string, RowAddress> {
  return new Map(
    [...fragments].flatMap(([fragment, rows]) =>
      rows.flatMap((row, offset) =>
        row === undefined ? [] : [[row.objectId, { fragment, offset }] as const],
      ),
    ),
  );
}

const aCommit = fc.record({
  put: someRows,
  removed: fc.array(anId, { maxLength: 4 }),
  /** Whether all fragments are joined afterwards. */
  compacted: fc.boolean(),
});

test("turns a version into another through their differences", () => {
  fc.assert(
    fc.property(fc.array(aCommit, { maxLength: 6 }), fc.nat(5), (commits, from) => {
      const fragments: Fragments = new Map();
      let [next, before]: [number, Fragments] = [0, new Map()];
      let state = stateOf(before);
      for (const [i, { put, removed, compacted }] of commits.entries()) {
        if (i === from) {
          before = new Map([...fragments].map(([id, rows]) => [id, [...rows]]));
          state = stateOf(before);
        }
        const gone = new Set([...put.map((row) => row.objectId), ...removed]);
        for (const [id, rows] of fragments) {
          fragments.set(
            id,
            rows.map((row) => (row !== undefined && gone.has(row.objectId) ? undefined : row)),
          );
        }
        fragments.set(next++, put);
        if (!compacted) continue;
        const all = [...fragments.values()].flat().filter((row) => row !== undefined);
        fragments.clear();
        fragments.set(next++, all);
      }
      state.merge({
        lostFragments: new Set([...before.keys()].filter((id) => !fragments.has(id))),
        remaining: new Map(
          [...fragments]
            .filter(([id]) => before.has(id))
            .map(([id, rows]) => [id, Uint8Array.from(rows, (row) => (row === undefined ? 0 : 1))]),
        ),
        added: [...fragments].filter(([id]) => !before.has(id)).map(([id, rows]) => batchOf(id, rows)),
      });
      check(
        state,
        new Map(
          [...fragments.values()]
            .flat()
            .filter((row) => row !== undefined)
            .map((row) => [row.objectId, row]),
        ),
      );
      for (const [id, address] of addressesOf(fragments)) assert.deepEqual(state.addressesOf(id), [address]);
      assert.ok(state.isMergeable);
    }),
    { numRuns: 200 },
  );
});

test("uses the first row of a duplicated id, and knows all places", () => {
  const row = (location: string): Row => ({ objectId: "t", objectType: "table", location, properties: {} });
  const state = stateOf(
    new Map([
      [3, [row("x")]],
      [5, [row("y")]],
    ]),
  );
  assert.deepEqual([state.size, state.duplicates, state.isMergeable], [1, 1, false]);
  assert.equal(state.get("t")?.location, "x");
  assert.deepEqual(state.addressesOf("t"), [
    { fragment: 3, offset: 0 },
    { fragment: 5, offset: 0 },
  ]);
  state.apply(new Map([["t", row("z")]]), new Map([["t", { fragment: 7, offset: 1 }]]));
  assert.deepEqual(state.addressesOf("t"), [{ fragment: 7, offset: 1 }]);
  assert.ok(state.isMergeable);
  state.apply(new Map([["t", row("w")]]));
  assert.deepEqual([state.addressesOf("t"), state.isMergeable], [undefined, false]);
});

test("keeps thousands of children in order through changes, and reclaims memory", () => {
  const row = (name: string): Row => ({
    objectId: `n$${name}`,
    objectType: "table",
    location: `${name}${"x".repeat(2000)}`,
    properties: {},
  });
  const names = Array.from({ length: 5000 }, (_, i) => `t${(i * 7919) % 5000}`);
  const state = createState(names.map(row));
  const expected = new Set(names);
  for (let i = 0; i < 20_000; i++) {
    const name = `t${(i * 31) % 9000}`;
    const isThere = expected.has(name);
    state.apply(new Map([[`n$${name}`, isThere ? undefined : row(name)]]));
    if (isThere) expected.delete(name);
    else expected.add(name);
  }
  assert.deepEqual(state.children("n", "table", "", 10_000), [...expected].sort(compareNames));
  for (const name of expected) assert.equal(state.get(`n$${name}`)?.location, row(name).location);
});

test("reclaims the memory of deleted rows in small pieces", () => {
  const memory = createMemory();
  const rows = Array.from(
    { length: 5000 },
    (_, i): Row => ({
      objectId: `n$t${i}`,
      objectType: "table",
      location: `${i}${"x".repeat(2000)}`,
      properties: {},
    }),
  );
  const state = createState(rows, memory);
  const bytes = state.bytes;
  for (const { objectId } of rows.slice(0, 4000)) {
    const before = memory.taken;
    state.apply(new Map([[objectId, undefined]]));
    assert.ok(memory.taken - before <= 1024 * 1024, `${memory.taken - before} bytes at once`);
  }
  assert.ok(state.bytes < bytes / 2, `${state.bytes} of ${bytes} bytes`);
  for (const row of rows.slice(4000)) assert.deepEqual(state.get(row.objectId), row);
});

test("finds nothing for half a character", () => {
  const state = createState([
    { objectId: "\ufffd", objectType: "table", location: "\ufffd", properties: {} },
  ]);
  assert.equal(state.get("\ud800"), undefined);
  assert.equal(state.ownerOf("\ud800"), undefined);
  assert.notEqual(state.get("\ufffd"), undefined);
});
