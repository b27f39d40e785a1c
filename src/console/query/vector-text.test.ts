import { expect, test } from "vitest";
import { parseVector } from "./vector-text.ts";

test.each([
  ["[0.1, -2, 3e-2]", [0.1, -2, 0.03]],
  ["1 2 3", [1, 2, 3]],
  ["1;2\n3", [1, 2, 3]],
  ["  ", []],
])("the text %j is a vector", (text, values) => expect(parseVector(text)).toEqual(values));

test("a part that is not a number is named", () => {
  expect(() => parseVector("1, two")).toThrow("“two” is not a number");
});
