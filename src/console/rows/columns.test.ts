import { Float64, Int64, Table, Utf8, vectorFromArray } from "apache-arrow";
import { expect, test } from "vitest";
import { columnsOf, isSortable, nextOrder, sortedIndices } from "./columns.ts";

const rows = new Table({
  id: vectorFromArray([3n, null, 1n], new Int64()),
  name: vectorFromArray(["b", "c", "a"], new Utf8()),
  _distance: vectorFromArray([0.5, 0.1, 0.2], new Float64()),
});

test("how well rows match comes before their columns", () => {
  expect(columnsOf(rows).map(({ name }) => name)).toEqual(["_distance", "id", "name"]);
});

test("rows are sorted by a column, with nulls last in both directions", () => {
  expect(sortedIndices(rows, undefined)).toEqual([0, 1, 2]);
  expect(sortedIndices(rows, { column: "id", isAscending: true })).toEqual([2, 0, 1]);
  expect(sortedIndices(rows, { column: "id", isAscending: false })).toEqual([0, 2, 1]);
  expect(sortedIndices(rows, { column: "missing", isAscending: true })).toEqual([0, 1, 2]);
});

test("a column is chosen for an ascending order, a descending one, and none", () => {
  const first = nextOrder(undefined, "id");
  expect(first).toEqual({ column: "id", isAscending: true });
  const second = nextOrder(first, "id");
  expect(second).toEqual({ column: "id", isAscending: false });
  expect(nextOrder(second, "id")).toBeUndefined();
  expect(nextOrder(second, "name")).toEqual({ column: "name", isAscending: true });
});

test("texts and numbers can be sorted", () => {
  expect([new Utf8(), new Int64()].map(isSortable)).toEqual([true, true]);
});
