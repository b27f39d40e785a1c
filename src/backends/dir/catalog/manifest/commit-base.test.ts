import assert from "node:assert/strict";
import fc from "fast-check";
import { test } from "vitest";
import { anId, someRows } from "../../../../../test/fixtures/catalog/state.ts";
import type { Row } from "../state/row.ts";
import { type RowAddress, type StoredRow, toStored } from "../state/rows/stored-row.ts";
import { type CatalogState, createState } from "../state/state.ts";
import type { Changes } from "../state/view.ts";
import { type BaseState, stateAfter } from "./commit-base.ts";

/** Number of the fragment that the commit adds, and of the one before. */
const ADDED = 7;
const OLD = 3;

const sorted = <T>(items: Iterable<T>): T[] => [...items].sort();

/** Everything that a commit asks a state about some ids. */
function answersOf(state: BaseState, ids: readonly string[], locations: readonly string[], rows: number) {
  return {
    rows: ids.map((id) => state.get(id)),
    addresses: ids.map((id) => state.addressesOf(id)),
    below: ["", ...ids].map((id) => [sorted(state.descendants(id)), state.hasChildren(id)]),
    owners: locations.map((location) => state.ownerOf(location)),
    inside: ["n", "x.lance"].map((directory) => sorted(new Set(state.locationsInside(directory)))),
    stored: sorted(
      [...state.rowsIn(new Set([OLD, ADDED]))].map((row) => JSON.stringify(Object.entries(row).sort())),
    ),
    remaining: [OLD, ADDED].map((fragment) => [...state.remainingIn(fragment, rows)]),
    verdicts: ["mine", "other"].map((change) => state.verdictOf(change)),
  };
}

/** Creates a state whose rows are in one fragment, in order. */
function placedState(rows: readonly Row[]): CatalogState {
  const state = createState([]);
  const places = rows.map(({ objectId }, offset) => [objectId, { fragment: OLD, offset }] as const);
  state.apply(new Map(rows.map((row) => [row.objectId, row])), new Map(places));
  return state;
}

test("a state after a commit equals the state to which the commit has been applied, before and after that", () => {
  const distinct = someRows.map((rows) => {
    const locations = new Set<string>();
    return rows.filter(({ location }) => {
      if (location === undefined) return true;
      return !locations.has(location) && locations.add(location);
    });
  });
  fc.assert(
    fc.property(distinct, distinct, fc.array(anId), fc.array(fc.nat(11)), (before, put, deleted, moved) => {
      const taken = new Set(put.map(({ location }) => location));
      // Rows whose locations others take go, as a mutation would have it.
      const gone = before.filter(({ location }) => location !== undefined && taken.has(location));
      const changes: Changes = new Map<string, Row | undefined>([
        ...deleted
          .filter((id) => before.some(({ objectId }) => objectId === id))
          .map((id) => [id, undefined] as const),
        ...gone.map(({ objectId }) => [objectId, undefined] as const),
        ...put.map((row) => [row.objectId, row] as const),
      ]);
      const kept = moved
        .flatMap((index) => before[index] ?? [])
        .filter(
          ({ objectId }, i, all) =>
            !changes.has(objectId) && all.findIndex((row) => row.objectId === objectId) === i,
        );
      const rows: StoredRow[] = [...kept, ...put].map(toStored);
      const addresses = new Map<string, RowAddress>(
        rows.map(({ objectId }, offset) => [objectId, { fragment: ADDED, offset }]),
      );
      const recorded = new Map([["mine", "committed" as const]]);
      const state = placedState(before);
      const expected = placedState(before);
      expected.apply(changes, addresses);
      expected.facts = { verdicts: recorded, transaction: "" };
      const ids = [...new Set([...before, ...put].map(({ objectId }) => objectId)), "nothing"];
      const locations = [
        ...new Set([...before, ...put].flatMap(({ location }) => location ?? [])),
        "nowhere",
      ];
      const answers = (view: BaseState) => answersOf(view, ids, locations, 12);
      const after = stateAfter(state, { changes, recorded, rows, addresses });
      assert.deepEqual(answers(after), answers(expected));
      state.apply(changes, addresses);
      assert.deepEqual(answers(after), answers(expected));
    }),
    { seed: 95, numRuns: 300 },
  );
});
