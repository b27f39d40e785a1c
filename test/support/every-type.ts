import * as arrow from "apache-arrow";
import { batchOf } from "../../src/client/rows/fitting.ts";

const item = (type: arrow.DataType) => new arrow.Field("item", type, true);
const member = (name: string, type: arrow.DataType) => new arrow.Field(name, type, true);
const mapOf = (key: arrow.DataType, value: arrow.DataType) =>
  new arrow.Map_(
    new arrow.Field(
      "entries",
      new arrow.Struct([new arrow.Field("key", key, false), new arrow.Field("value", value, true)]),
      false,
    ) as never,
  );
const [LEAST, MOST] = [-(2n ** 63n), 2n ** 63n - 1n];
const SECOND = 1_000_000_000n;
/** Least and largest times of a unit, in nanoseconds. */
const ends = (unit: bigint) => [LEAST * unit, MOST * unit, -unit, 0n];
const bytes = (...values: readonly number[]) => Uint8Array.from(values);

/** Values of each type, with its ends; every column also has a null. */
export const COLUMNS: Readonly<Record<string, readonly [type: arrow.DataType, values: readonly unknown[]]>> =
  {
    null: [new arrow.Null(), []],
    bool: [new arrow.Bool(), [true, false]],
    int8: [new arrow.Int8(), [-128, 127]],
    int16: [new arrow.Int16(), [-32_768, 32_767]],
    int32: [new arrow.Int32(), [-(2 ** 31), 2 ** 31 - 1]],
    int64: [new arrow.Int64(), [LEAST, MOST, 2n ** 53n + 1n]],
    uint8: [new arrow.Uint8(), [0, 255]],
    uint16: [new arrow.Uint16(), [0, 65_535]],
    uint32: [new arrow.Uint32(), [0, 2 ** 32 - 1]],
    uint64: [new arrow.Uint64(), [0n, 2n ** 64n - 1n, 2n ** 53n + 1n]],
    float16: [new arrow.Float16(), [0.1, -0, Number.NaN, Number.POSITIVE_INFINITY, 65_504, 2 ** -24]],
    float32: [
      new arrow.Float32(),
      [0.1, -0, Number.NaN, Number.NEGATIVE_INFINITY, 3.4028234663852886e38, 1e-45],
    ],
    float64: [
      new arrow.Float64(),
      [0.1, -0, Number.NaN, Number.POSITIVE_INFINITY, 5e-324, 2 ** 53 + 2, 1e22],
    ],
    decimal128: [new arrow.Decimal(10, 38), ["1234567890123456789012345678.0123456789", "-0.0000000001"]],
    decimal256: [new arrow.Decimal(10, 76, 256), [`${"9".repeat(66)}.0123456789`, `-${"9".repeat(66)}`]],
    decimal_of_hundreds: [new arrow.Decimal(-2, 10), ["123400", "-100", "0"]],
    text: [new arrow.Utf8(), ["", " ", "null", "NaN", 'a"b', "1,2\r\n3\r4\n", "\0", "😀", "\ufeffx", "007"]],
    large_text: [new arrow.LargeUtf8(), ["", "x"]],
    bytes: [new arrow.Binary(), [bytes(), bytes(0, 255)]],
    large_bytes: [new arrow.LargeBinary(), [bytes(), bytes(0, 255)]],
    fixed_bytes: [new arrow.FixedSizeBinary(3), [bytes(0, 1, 255)]],
    day: [new arrow.DateDay(), [-(2n ** 31n), 2n ** 31n - 1n, 0n].map((days) => days * 86_400n * SECOND)],
    day_in_millis: [new arrow.DateMillisecond(), [-86_400n * SECOND, 253_402_214_400n * SECOND]],
    time_s: [new arrow.TimeSecond(), [0, 86_399]],
    time_ms: [new arrow.TimeMillisecond(), [0, 86_399_999]],
    time_us: [new arrow.TimeMicrosecond(), [0n, 86_399_999_999n]],
    time_ns: [new arrow.TimeNanosecond(), [0n, 86_399_999_999_999n]],
    at_s: [new arrow.TimestampSecond(), ends(SECOND)],
    at_ms: [new arrow.TimestampMillisecond(), ends(1_000_000n)],
    at_us: [new arrow.TimestampMicrosecond(), ends(1000n)],
    at_ns: [new arrow.TimestampNanosecond(), ends(1n)],
    at_s_utc: [new arrow.TimestampSecond("UTC"), ends(SECOND)],
    at_us_zone: [new arrow.TimestampMicrosecond("Europe/Berlin"), ends(1000n)],
    lasts_s: [new arrow.DurationSecond(), [LEAST, MOST]],
    lasts_ns: [new arrow.DurationNanosecond(), [LEAST, MOST]],
    list: [new arrow.List(item(new arrow.Uint64())), [[2n ** 64n - 1n, null], []]],
    list_of_times: [new arrow.List(item(new arrow.TimestampNanosecond("UTC"))), [[1n, null]]],
    list_of_lists: [new arrow.List(item(new arrow.List(item(new arrow.Utf8())))), [[["", null], null, []]]],
    vector: [new arrow.FixedSizeList(2, item(new arrow.Float32())), [[0.1, -0]]],
    vector_of_doubles: [new arrow.FixedSizeList(2, item(new arrow.Float64())), [[0.1, 5e-324]]],
    struct: [
      new arrow.Struct([member("a", new arrow.Utf8()), member("t", new arrow.TimestampMicrosecond())]),
      [
        { a: "", t: 1000n },
        { a: null, t: null },
      ],
    ],
    list_of_structs: [
      new arrow.List(item(new arrow.Struct([member("a", new arrow.Decimal(2, 5))]))),
      [[{ a: "1.20" }, null]],
    ],
    map: [mapOf(new arrow.Utf8(), new arrow.Int64()), [new Map([["a", MOST]]), new Map()]],
    map_of_numbers: [mapOf(new arrow.Int32(), new arrow.TimestampMicrosecond()), [new Map([[1, 1000n]])]],
    kept_once: [new arrow.Dictionary(new arrow.Utf8(), new arrow.Int32()), ["a", "", "a"]],
  };
const ROWS = 11;

/** Returns a table of some of the columns. */
export function tableOf(names: readonly string[]): arrow.Table {
  const columns = names.map((name) => COLUMNS[name] as (typeof COLUMNS)[string]);
  const schema = new arrow.Schema(names.map((name, at) => member(name, columns[at]?.[0] as arrow.DataType)));
  const values = columns.map(([, each]) => Array.from({ length: ROWS }, (_, row) => each[row] ?? null));
  return new arrow.Table([batchOf(arrow, schema, values)]);
}
