import { expect, test } from "vitest";
import { barsOf } from "./vector-bars.ts";

test("a short vector has a bar for each number, relative to the largest", () => {
  expect(barsOf([1, -2, 0])).toEqual([0.5, -1, 0]);
});

test("a long vector has bars of means", () => {
  const bars = barsOf(Float32Array.from({ length: 240 }, (_, at) => (at < 120 ? 1 : -1)));
  expect(bars).toEqual([...Array(12).fill(1), ...Array(12).fill(-1)]);
});

test("zeros and numbers that are none are drawn flat", () => {
  expect(barsOf([0, 0])).toEqual([0, 0]);
  expect(barsOf([Number.NaN, 1])).toEqual([0, 0]);
  expect(barsOf([])).toEqual([]);
});
