import { expect, test } from "vitest";
import { createTypeGuess, parseValue } from "./csv-types.ts";

/** Returns the type of a column, and its values. */
function read(...texts: readonly string[]) {
  const guess = createTypeGuess(["c"]);
  for (const text of texts) guess.add([text]);
  const [column] = guess.columns();
  if (column === undefined) throw new Error("there is a column");
  return [column.type, texts.map((text) => parseValue(column, text))];
}

test("a column has the narrowest type that all its values have", () => {
  expect(read("1", "-2", "")).toEqual(["integer", [1n, -2n, null]]);
  expect(read("1", "2.5", "1e3")).toEqual(["number", [1, 2.5, 1000]]);
  expect(read("true", "FALSE")).toEqual(["truth", [true, false]]);
  expect(read("1", "one")).toEqual(["text", ["1", "one"]]);
  expect(read("", "")).toEqual(["text", [null, null]]);
});

test("numbers with leading zeros are texts, because they are names of something", () => {
  expect(read("01234", "5")).toEqual(["text", ["01234", "5"]]);
});

test("integers that 64 bits do not hold are numbers, and all others keep their digits", () => {
  expect(read("9223372036854775807")).toEqual(["integer", [2n ** 63n - 1n]]);
  expect(read("+1234567890123456789")).toEqual(["integer", [1234567890123456789n]]);
  expect(read("9223372036854775808")).toEqual(["number", [2 ** 63]]);
});

const nanos = (millis: number) => BigInt(millis) * 1_000_000n;

test("times are in UTC unless they name a zone", () => {
  expect(read("2026-05-04", "2026-05-04 13:00", "2026-05-04T13:00:00+02:00")).toEqual([
    "time",
    [Date.UTC(2026, 4, 4), Date.UTC(2026, 4, 4, 13), Date.UTC(2026, 4, 4, 11)].map(nanos),
  ]);
});

test("times keep the digits of a second", () => {
  const guess = createTypeGuess(["c"]);
  for (const text of ["2026-05-04T00:00:00.5Z", "2026-05-04T00:00:00.123456Z"]) guess.add([text]);
  const [column] = guess.columns();
  expect(column?.fraction).toBe(6);
  expect(read("2026-05-04T00:00:00.123456789Z")[1]).toEqual([nanos(Date.UTC(2026, 4, 4)) + 123_456_789n]);
  expect(read("2026-13-04")[0]).toBe("text");
  expect(read("2026-02-29", "2024-02-30")[0]).toBe("text");
});

test("lists of equally many numbers are vectors, and others are texts", () => {
  expect(read("[1, 2.5]", "[3, 4]")).toEqual([
    "vector",
    [
      [1, 2.5],
      [3, 4],
    ],
  ]);
  expect(read("[1, 2]", "[3]")).toEqual(["text", ["[1, 2]", "[3]"]]);
});
