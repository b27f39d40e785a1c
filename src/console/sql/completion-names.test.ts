import { expect, test } from "vitest";
import { completionNames, tablesIn } from "./completion-names.ts";

const TABLES = [["people"], ["team", "people"], ["team", "orders"], ["team", "eu", "orders"]];

test("tables are completed below their namespaces, as statements name them", () => {
  const columns = new Map([["team/orders", ["id", "price"]]]);
  expect(completionNames(TABLES, columns)).toEqual({
    people: [],
    team: { people: [], orders: ["id", "price"] },
    team$eu: { orders: [] },
  });
});

test("the columns of tables are asked for once a statement has their names", () => {
  expect(tablesIn("SELECT * FROM Team.Orders", TABLES)).toEqual([
    ["team", "orders"],
    ["team", "eu", "orders"],
  ]);
});
