import * as arrow from "apache-arrow";
import {
  Binary,
  Decimal,
  Field,
  FixedSizeList,
  Float16,
  Float32,
  Float64,
  Int64,
  List,
  Struct,
  TimestampMicrosecond,
  Utf8,
  type Vector,
  vectorFromArray,
} from "apache-arrow";
import { expect, test } from "vitest";
import { fittingVector } from "../../client/rows/fitting.ts";
import { barsOf, cellOf } from "./cells.ts";

const cell = (values: readonly unknown[], type: never) => {
  return cellOf(vectorFromArray(values, type) as Vector, 0);
};

test("a missing value is shown as such", () => {
  expect(cell([null, "a"], new Utf8() as never)).toEqual({ kind: "null" });
});

test("a time is readable, whatever its unit", () => {
  const type = new TimestampMicrosecond() as never;
  expect(cell([Date.UTC(2026, 4, 4, 13, 2, 1)], type)).toEqual({
    kind: "time",
    text: "2026-05-04 13:02:01",
    iso: "2026-05-04T13:02:01",
  });
});

test("a 64-bit integer keeps all digits", () => {
  const cellOfInteger = cell([9_007_199_254_740_993n], new Int64() as never);
  expect(cellOfInteger).toEqual({ kind: "number", text: "9007199254740993" });
});

test("a list of numbers is a vector", () => {
  const type = new FixedSizeList(4, new Field("item", new Float32()));
  const found = cell([[1, 2, 3, 4]], type as never);
  expect(found.kind === "vector" && Array.from(found.values)).toEqual([1, 2, 3, 4]);
});

test("other lists are JSON", () => {
  const type = new List(new Field("item", new Utf8()));
  expect(cell([["a", "b"]], type as never)).toEqual({ kind: "json", text: '["a","b"]' });
});

test("bytes of an image are known by their beginning", () => {
  const png = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0]);
  expect(cell([png], new Binary() as never)).toMatchObject({ kind: "bytes", image: "image/png" });
  expect(cell([new Uint8Array([1, 2])], new Binary() as never)).toMatchObject({ image: undefined });
});

test.each([
  [12345, "123.45"],
  [-5, "-0.05"],
])("the decimal %i of scale 2 is %s", (units, text) => {
  const words = new Uint32Array(new BigInt64Array([BigInt(units), units < 0 ? -1n : 0n]).buffer);
  expect(cell([words], new Decimal(2, 10) as never)).toEqual({ kind: "number", text });
});

test("numbers, times and groups are shown with all their digits", () => {
  expect(cell([0.1234567891], new Float64() as never)).toMatchObject({ text: "0.1234567891" });
  expect(cell([0.1], new Float32() as never)).toMatchObject({ text: "0.1" });
  expect(cell([-0], new Float64() as never)).toMatchObject({ text: "-0" });
  expect(cell([Number.NaN], new Float64() as never)).toMatchObject({ text: "NaN" });
  const micros = fittingVector(arrow, "t", [1_777_899_721_123_456_000n], new TimestampMicrosecond("UTC"));
  expect(cellOf(micros, 0)).toEqual({
    kind: "time",
    text: "2026-05-04 13:02:01.123456 UTC",
    iso: "2026-05-04T13:02:01.123456Z",
  });
  const group = new Struct([new Field("d", new Decimal(2, 10)), new Field("t", new TimestampMicrosecond())]);
  const groups = fittingVector(arrow, "g", [{ d: "1.20", t: 1000n }], group);
  expect(cellOf(groups, 0)).toEqual({ kind: "json", text: '{"d":1.20,"t":"1970-01-01T00:00:00.000001"}' });
});

test("a vector of 16-bit numbers has its numbers", () => {
  const type = new FixedSizeList(4, new Field("item", new Float16()));
  const found = cell([[1, 2, 3, 0.5]], type as never);
  expect(found.kind === "vector" && Array.from(found.values)).toEqual([1, 2, 3, 0.5]);
});

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
