import assert from "node:assert/strict";
import fc from "fast-check";
import { parentId, type Row } from "./row.ts";
import type { CatalogState } from "./state.ts";

/** Names that are easily confused: separators, prefixes of others, several scripts, the empty name. */
const NAMES = ["a", "b", "a#", "a-", "a.b", "é", "\uffff", "\u{1f600}", ""];
/** An id of up to four names. */
export const anId = fc
  .array(fc.constantFrom(...NAMES), { minLength: 1, maxLength: 4 })
  .map((names) => names.join("$"))
  .filter((id) => id !== "");
const aRow: fc.Arbitrary<Row> = fc.record(
  {
    objectId: anId,
    objectType: fc.constantFrom("namespace", "table", "table", "table_version"),
    location: fc.option(fc.constantFrom("x.lance", "n/x", "é/\u{1f600}", "y", "z"), { nil: undefined }),
    properties: fc.constantFrom<Record<string, string>>({}, { k: "v" }, { "\u{1f600}": '"' }),
  },
  { noNullPrototype: true },
);
/** Rows with different ids. */
export const someRows = fc.uniqueArray(aRow, { selector: (row) => row.objectId, maxLength: 12 });

/** Compares a state with the plain rows that it should contain. */
export function check(state: CatalogState, model: ReadonlyMap<string, Row>): void {
  const rows = [...model.values()];
  assert.equal(state.size, model.size);
  const ids = new Set([...model.keys(), ...rows.map((row) => parentId(row.objectId)), "", "a", "nothing"]);
  for (const id of ids) {
    assert.deepEqual(state.get(id), model.get(id));
    const below = [...model.keys()].filter(
      (other) => other !== id && (id === "" || other.startsWith(`${id}$`)),
    );
    assert.deepEqual([...state.descendants(id)].sort(), below.sort(), `below ${id}`);
    const children = rows.filter((row) => parentId(row.objectId) === id);
    assert.equal(state.hasChildren(id), children.length > 0, `children of ${id}`);
    for (const kind of ["namespace", "table"] as const) {
      const names = children
        .filter((row) => row.objectType === kind)
        .map(({ objectId }) => objectId.slice(objectId.lastIndexOf("$") + 1));
      names.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
      // A page starts after a name, and the empty name is not after any name.
      const listed = names.filter((name) => name !== "");
      for (const size of [1, 2, 100]) assert.deepEqual(pages(state, id, kind, size), [...new Set(listed)]);
    }
  }
  const locations = rows.map((row) => row.location).filter((location) => location !== undefined);
  for (const location of [...locations, "nowhere"]) {
    const owner = state.ownerOf(location);
    assert.equal(
      owner === undefined ? undefined : model.get(owner)?.location,
      locations.find((l) => l === location),
    );
  }
  for (const directory of ["n", "é", "x.lance", "nowhere"]) {
    const inside = locations.filter((location) => location.startsWith(`${directory}/`));
    assert.deepEqual([...state.locationsInside(directory)].sort(), inside.sort(), `inside ${directory}`);
  }
}

function pages(state: CatalogState, id: string, kind: "namespace" | "table", size: number): string[] {
  const names: string[] = [];
  for (let page = state.children(id, kind, "", size); page.length > 0; ) {
    names.push(...page);
    page = state.children(id, kind, names.at(-1) as string, size);
  }
  return names;
}
