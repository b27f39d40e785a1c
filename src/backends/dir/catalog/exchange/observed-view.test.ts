import assert from "node:assert/strict";
import { test } from "vitest";
import { table } from "../../../../../test/fixtures/catalog/catalog.ts";
import { createState } from "../state/state.ts";
import type { CatalogView } from "../state/view.ts";
import { NO_FACTS } from "../state/view.ts";
import { observe, stillHold } from "./observed-view.ts";

const NAMES = ["a", "a$b", "a$c", "d/e"];
const state = () => createState(NAMES.map((name) => table(name)));

/** Queries, each with changes after which their answers differ. */
const QUERIES: Readonly<Record<string, readonly [(view: CatalogView) => unknown, ...(readonly Change[])]>> = {
  "a row": [(view) => view.get("a"), ["a", undefined], ["a", { by: "another" }]],
  "a row that is missing": [(view) => view.get("new"), ["new", {}]],
  "whether there are children": [(view) => view.hasChildren("d/e"), ["d/e$x", {}]],
  "the owner of a location": [(view) => view.ownerOf("a.lance"), ["a", undefined]],
  "everything below": [(view) => [...view.descendants("a")], ["a$c", undefined], ["a$x", {}]],
  "the first below": [(view) => firstOf(view.descendants("a")), ["a$b", undefined], ["a$a", {}]],
  "locations inside a directory": [(view) => [...view.locationsInside("d")], ["d/e", undefined], ["d/f", {}]],
};
type Change = readonly [objectId: string, properties: Record<string, string> | undefined];

for (const [title, [query, ...changes]] of Object.entries(QUERIES)) {
  test(`notices another answer to a query of ${title}, and no other change`, () => {
    const { view, observations } = observe(state());
    assert.deepEqual(query(view), query(state()));
    const sent = structuredClone(observations);
    const unrelated = state();
    unrelated.apply(new Map([["unrelated", table("unrelated")]]));
    assert.ok(stillHold(sent, state()));
    assert.ok(stillHold(sent, unrelated));
    for (const [objectId, properties] of changes) {
      const changed = state();
      changed.apply(new Map([[objectId, properties && table(objectId, properties)]]));
      assert.ok(!stillHold(sent, changed), objectId);
    }
  });
}

test("notices the verdict of a change", () => {
  const { view, observations } = observe(state());
  assert.equal(view.verdictOf("change"), undefined);
  const facts = { ...NO_FACTS, verdicts: new Map([["change", "refused"]]) };
  const changed = Object.assign(state(), { facts });
  assert.ok(stillHold(observations, state()));
  assert.ok(!stillHold(observations, changed));
});

function firstOf(items: Iterable<string>): string | undefined {
  for (const item of items) return item;
  return undefined;
}
