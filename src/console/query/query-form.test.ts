import { expect, test } from "vitest";
import { EMPTY_FORM, formOf, paramsOf, parseVector, requestOf } from "./query-form.ts";

test("an empty form asks for the first rows", () => {
  expect(requestOf(EMPTY_FORM)).toEqual({ k: 10 });
});

test("each field becomes its part of the request", () => {
  const form = {
    vector: "[1, 2]",
    vectorColumn: "v",
    words: " hello ",
    filter: "id > 1",
    columns: ["id"],
    limit: "3",
    distance: "cosine",
  };
  expect(requestOf(form)).toEqual({
    k: 3,
    vector: [1, 2],
    vectorColumn: "v",
    distanceType: "cosine",
    fullTextQuery: "hello",
    filter: "id > 1",
    columns: ["id"],
  });
});

test("a limit that is none is refused before the call", () => {
  expect(() => requestOf({ ...EMPTY_FORM, limit: "0" })).toThrow("1 or more");
  expect(() => requestOf({ ...EMPTY_FORM, limit: "x" })).toThrow("1 or more");
});

test("an address keeps a form", () => {
  const form = { ...EMPTY_FORM, vector: "1,2", filter: "a = 'b'", columns: ["x, y", "z"], limit: "5" };
  const params = Object.fromEntries(Object.entries(paramsOf(form)).filter(([, text]) => text !== undefined));
  expect(formOf(params as Record<string, string>)).toEqual(form);
  expect(formOf({})).toBeUndefined();
  expect(formOf({ limit: "10", columns: "{" })).toEqual(EMPTY_FORM);
});

test.each([
  ["[0.1, -2, 3e-2]", [0.1, -2, 0.03]],
  ["1 2 3", [1, 2, 3]],
  ["1;2\n3", [1, 2, 3]],
  ["  ", []],
])("the text %j is a vector", (text, values) => expect(parseVector(text)).toEqual(values));

test("a part that is not a number is named", () => {
  expect(() => parseVector("1, two")).toThrow("“two” is not a number");
});
