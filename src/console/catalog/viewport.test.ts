import { expect, test } from "vitest";
import { visibleRange } from "./viewport.ts";

test("only lines near the visible part are drawn, however many there are", () => {
  expect(visibleRange(0, 280, 28, 100_000)).toEqual({ first: 0, end: 20 });
  expect(visibleRange(28_000, 280, 28, 100_000)).toEqual({ first: 990, end: 1020 });
});

test("a list that has become shorter than the place it was scrolled to draws nothing beyond its end", () => {
  expect(visibleRange(28_000, 280, 28, 5)).toEqual({ first: 5, end: 5 });
});
