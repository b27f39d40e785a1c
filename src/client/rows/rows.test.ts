import {
  type DataType,
  DateDay,
  Decimal,
  DurationMicrosecond,
  Field,
  FixedSizeBinary,
  FixedSizeList,
  Float16,
  Float32,
  List,
  Schema,
  TimestampMicrosecond,
  TimestampNanosecond,
  TimestampSecond,
} from "apache-arrow";
import { expect, test } from "vitest";
import { type ErrorName, isLanceError } from "../../namespace/errors.ts";
import { type Row, rowsToTable } from "./rows.ts";

const schemaOf = (type: DataType) => new Schema([new Field("x", type, true)]);
const vector = new FixedSizeList(2, new Field("item", new Float32(), true));
const noon = new Date(Date.UTC(2026, 4, 4, 12, 0, 0, 250));

const failsWith = (name: ErrorName) => (error: unknown) => isLanceError(error, name);

/** Returns the integers in which a column keeps values. */
async function integersOf(type: DataType, ...values: readonly unknown[]): Promise<unknown[]> {
  const table = await rowsToTable(
    values.map((x): Row => ({ x })),
    schemaOf(type),
  );
  return [...(table.getChild("x")?.data[0]?.values ?? [])].slice(0, values.length);
}

test.each<[DataType, unknown]>([
  [vector, [1, 2, 3]],
  [vector, [1]],
  [vector, new Float32Array(3)],
  [new FixedSizeBinary(4), new Uint8Array(2)],
  [new FixedSizeBinary(4), "abcd"],
  [new DateDay(), "2026-05-04"],
  [new DateDay(), new Date(Number.NaN)],
  [new TimestampSecond(), noon],
  [new TimestampNanosecond(), new Date(Date.UTC(9999, 0))],
  [new TimestampMicrosecond(), "2026-05-04"],
  [new Decimal(2, 4), 123.45],
  [new Decimal(2, 4), 1.234],
  [new Float16(), 1e6],
  [new Float32(), 1e300],
  [new List(new Field("item", new TimestampSecond(), true)), [noon]],
])("rows whose value a column of %s cannot hold are refused and not changed", async (type, x) => {
  await expect(rowsToTable([{ x }], schemaOf(type))).rejects.toSatisfy(failsWith("InvalidInput"));
});

test("an integer beyond 64 bits is refused in a new column, too", async () => {
  await expect(rowsToTable([{ x: 2n ** 63n }])).rejects.toSatisfy(failsWith("InvalidInput"));
});

test("times become exact units of their column, from dates, milliseconds and nanoseconds", async () => {
  const millis = BigInt(noon.getTime());
  const nanos = millis * 1_000_000n + 1_001n;
  expect(await integersOf(new TimestampNanosecond(), noon, noon.getTime(), nanos, null)).toEqual([
    ...[millis * 1_000_000n, millis * 1_000_000n, nanos, 0n],
  ]);
  // A number of milliseconds with microseconds, as results have it.
  expect(await integersOf(new TimestampMicrosecond(), noon.getTime() + 0.123, -0.001)).toEqual([
    ...[millis * 1_000n + 123n, -1n],
  ]);
  expect(await integersOf(new DateDay(), noon, -1)).toEqual([20_577, -1]);
});

test("decimals and durations take numbers", async () => {
  expect(await integersOf(new Decimal(2, 10), "1.5")).toEqual([150]);
  expect(await integersOf(new Decimal(2, 10), 1.5)).toEqual([150]);
  expect(await integersOf(new Decimal(2, 10), 2n)).toEqual([200]);
  expect(await integersOf(new DurationMicrosecond(), 5)).toEqual([5n]);
});
