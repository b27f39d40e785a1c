import { expect, test } from "vitest";
import { orderingOf, orderOf, orderText } from "./order.ts";

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
