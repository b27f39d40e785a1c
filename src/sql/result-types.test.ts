import assert from "node:assert/strict";
import { DataType, Type } from "apache-arrow";
import { afterAll, test } from "vitest";
import { runSql } from "../../test/fixtures/sql.ts";
import { createSqlEngine } from "./create-engine.ts";

const engine = createSqlEngine();
afterAll(() => engine.close());

/** Expressions of every type of DuckDB with the type of Arrow and the values that leave. */
const VALUES: readonly (readonly [expression: string, type: string, values: unknown])[] = [
  ["true", "Bool", [true]],
  ["(-128)::TINYINT", "Int8", [-128]],
  ["(-32768)::SMALLINT", "Int16", [-32768]],
  ["(-2147483648)::INTEGER", "Int32", [-2147483648]],
  ["9007199254740993", "Int64", [9007199254740993n]],
  ["255::UTINYINT", "Uint8", [255]],
  ["65535::USMALLINT", "Uint16", [65535]],
  ["4294967295::UINTEGER", "Uint32", [4294967295]],
  ["18446744073709551615::UBIGINT", "Uint64", [18446744073709551615n]],
  ["(-12345678901234567890)::HUGEINT", "Decimal[38e0]", ["-12345678901234567890"]],
  ["12345678901234567890123::UHUGEINT", "Decimal[38e0]", ["12345678901234567890123"]],
  ["0.1::FLOAT", "Float32", [Math.fround(0.1)]],
  ["'-0'::DOUBLE", "Float64", [-0]],
  ["(-1.5)::DECIMAL(4,1)", "Decimal[4e+1]", ["-15"]],
  ["(-1.5)::DECIMAL(9,2)", "Decimal[9e+2]", ["-150"]],
  ["(-1.5)::DECIMAL(18,3)", "Decimal[18e+3]", ["-1500"]],
  ["(-12345678901234567890.5)::DECIMAL(38,1)", "Decimal[38e+1]", ["-123456789012345678905"]],
  ["'ä€😀 and more than twelve bytes'", "Utf8", ["ä€😀 and more than twelve bytes"]],
  ["'\\x00\\xFF'::BLOB", "Binary", [Uint8Array.of(0, 255)]],
  ["DATE '1969-12-31'", "Date32<DAY>", [-86_400_000]],
  ["TIME '23:59:59.999999'", "Time64<MICROSECOND>", [86399999999n]],
  ["TIMESTAMP '1969-12-31 23:59:59.999999'", "Timestamp<MICROSECOND>", [-1n]],
  ["'1970-01-01 00:00:01'::TIMESTAMP_S", "Timestamp<SECOND>", [1n]],
  ["'1970-01-01 00:00:00.001'::TIMESTAMP_MS", "Timestamp<MILLISECOND>", [1n]],
  ["'1970-01-01 00:00:00.000000001'::TIMESTAMP_NS", "Timestamp<NANOSECOND>", [1n]],
  ["TIMESTAMPTZ '1970-01-01 01:00:00+01'", "Timestamp<MICROSECOND, UTC>", [0n]],
  ["'12:30:00.5+02:30'::TIMETZ", "Utf8", ["12:30:00.5+02:30"]],
  ["'00:00:00-15:59:59'::TIMETZ", "Utf8", ["00:00:00-15:59:59"]],
  ["'b'::ENUM('a','b')", "Utf8", ["b"]],
  ["'00000000-0000-0000-0000-000000000001'::UUID", "Utf8", ["00000000-0000-0000-0000-000000000001"]],
  ["'ffffffff-ffff-4fff-bfff-ffffffffffff'::UUID", "Utf8", ["ffffffff-ffff-4fff-bfff-ffffffffffff"]],
  ["'10101010101'::BIT", "Utf8", ["10101010101"]],
  ["'{\"a\": 1}'::JSON", "Utf8", ['{"a": 1}']],
  ["[1, NULL, 3]", "List<Int32>", [[1, null, 3]]],
  ["[[1], [], NULL]", "List<List<Int32>>", [[[1], [], null]]],
  ["[1, 2]::INTEGER[2]", "FixedSizeList[2]<Int32>", [[1, 2]]],
  ["{'a': 1, 'b': 'x'}", "Struct<{a:Int32, b:Utf8}>", [{ a: 1, b: "x" }]],
  ["MAP {'a': 1}", "Map<{key:Utf8, value:Int32}>", [{ a: 1 }]],
  ["union_value(n := 5)", "Union<Int32>", [5]],
  ["NULL", "Int32", [null]],
  ["NULL::INTEGER[2]", "FixedSizeList[2]<Int32>", [null]],
  ["NULL::STRUCT(a INTEGER)", "Struct<{a:Int32}>", [null]],
];

function plain(value: unknown, type: DataType): unknown {
  if (value === null || value === undefined) return null;
  if (DataType.isDecimal(type)) {
    const [low = 0, b = 0, c = 0, high = 0] = value as Uint32Array;
    const whole = (BigInt(high | 0) << 96n) | (BigInt(c) << 64n) | (BigInt(b) << 32n) | BigInt(low);
    return String(whole);
  }
  if (DataType.isList(type) || DataType.isFixedSizeList(type)) {
    const child = type.children[0]?.type as DataType;
    return [...(value as Iterable<unknown>)].map((item) => plain(item, child));
  }
  if (DataType.isStruct(type) || DataType.isMap(type)) return (value as { toJSON(): unknown }).toJSON();
  return value;
}

test.each(VALUES)("%s leaves as %s", async (expression, typeName, values) => {
  const table = await runSql(engine, `SELECT ${expression} AS v`);
  const vector = table.getChild("v");
  const type = vector?.type as DataType;
  assert.equal(String(type), typeName);
  // Times of the library are rounded to milliseconds; the bytes are not.
  const isWide = [Type.Timestamp, Type.Time].includes(type.typeId);
  const found = isWide
    ? [...((vector?.data[0]?.values ?? []) as BigInt64Array)]
    : [plain(vector?.get(0), type)];
  assert.deepEqual(JSON.parse(texts(found)), JSON.parse(texts(values)));
});

const texts = (value: unknown) =>
  JSON.stringify(value, (_key, each) =>
    typeof each === "bigint"
      ? `${each}n`
      : Object.is(each, -0)
        ? "-0"
        : each instanceof Uint8Array
          ? [...each]
          : each,
  );

test("an interval leaves as months, days and nanoseconds", async () => {
  const table = await runSql(
    engine,
    "SELECT v FROM (VALUES (INTERVAL '14 months 3 days 1 microsecond'), (INTERVAL '-1 day')) AS t(v)",
  );
  const bytes = table.getChild("v")?.data[0]?.values as Int32Array;
  assert.equal(table.numRows, 2);
  const numbers = new Int32Array(bytes.buffer, bytes.byteOffset, 8);
  assert.deepEqual([...numbers], [14, 3, 1000, 0, 0, -1, 0, 0]);
});

test("a union keeps the member of each value", async () => {
  const table = await runSql(
    engine,
    "SELECT v FROM (VALUES (1::UNION(n INTEGER, s VARCHAR)), ('x'::UNION(n INTEGER, s VARCHAR)), (NULL)) AS t(v)",
  );
  assert.deepEqual([...(table.getChild("v") ?? [])], [1, "x", null]);
});

test.each([
  ["'infinity'::TIMESTAMP", /infinite timestamp/],
  ["'-infinity'::DATE", /infinite date/],
  ["170141183460469231731687303715884105727::HUGEINT", /more than 38 digits/],
])("refuses %s, which Arrow does not have", async (expression, message) => {
  await assert.rejects(runSql(engine, `SELECT ${expression}`), message);
});

test("results of many batches have all rows in order", async () => {
  const table = await runSql(engine, "SELECT i, 'text ' || i AS s, [i, i] AS l FROM range(100000) t(i)");
  assert.equal(table.numRows, 100_000);
  let row = 0;
  for (const { i, s } of table) {
    assert.equal(i, BigInt(row));
    assert.equal(s, `text ${row}`);
    row++;
  }
});
