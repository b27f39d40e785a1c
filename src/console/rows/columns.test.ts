import { Float64, Int64, Table, Utf8, vectorFromArray } from "apache-arrow";
import { expect, test } from "vitest";
import {
  columnsOf,
  conditionOf,
  isSortable,
  nextOrder,
  orderingOf,
  orderOf,
  orderText,
  sortedIndices,
} from "./columns.ts";

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

test.each([
  { column: "price", isAscending: true },
  { column: "price", isAscending: false },
  { column: "-odd", isAscending: true },
  { column: "+odd", isAscending: false },
])("an order in an address is read as it was written: %o", (order) => {
  expect(orderOf(orderText(order))).toEqual(order);
});

test("no order is none", () => {
  expect(orderText(undefined)).toBeUndefined();
  expect(orderOf(undefined)).toBeUndefined();
  expect(orderingOf(undefined)).toEqual([]);
});

test("a request names a column with spaces between backticks", () => {
  expect(orderingOf({ column: "a b", isAscending: false })).toEqual([
    { columnName: "`a b`", ascending: false, nullsFirst: false },
  ]);
});

test("a condition has the integers and texts of a row", () => {
  const rows = new Table({
    id: vectorFromArray([1n, null], new Int64()),
    "odd name": vectorFromArray(["it's", "x".repeat(500)], new Utf8()),
    price: vectorFromArray([0.1, 0.2], new Float64()),
  });
  expect(conditionOf(rows, 0)).toBe("id = 1 AND `odd name` = 'it''s'");
  expect(conditionOf(rows, 1)).toBe("id IS NULL");
});
