import { expect, test } from "vitest";
import { hrefOf, parseRoute, type Route } from "./route.ts";

test.each<Route>([
  { page: "activity" },
  { page: "namespace", id: [] },
  { page: "namespace", id: ["a/b", "c d", "%"] },
  { page: "table", id: ["ns", "t#1?"], view: "query" },
  { page: "table", id: ["t"], view: "query", params: { filter: "a = 'b&c' # ?", limit: "10" } },
])("the link to a page leads to the page: %o", (route) => {
  expect(parseRoute(hrefOf(route))).toEqual(route);
});

test("an unknown address leads to the root", () => {
  for (const hash of ["", "#", "#/nothing", "#/table/rows", "#/table/unknown/t"])
    expect(parseRoute(hash)).toEqual({ page: "namespace", id: [] });
});
