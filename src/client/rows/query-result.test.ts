import assert from "node:assert/strict";
import {
  type DataType,
  DateDay,
  Decimal,
  Field,
  FixedSizeList,
  Float32,
  Int64,
  List,
  Schema,
  Struct,
  TimestampMicrosecond,
  TimestampMillisecond,
  TimestampNanosecond,
  TimestampSecond,
  tableToIPC,
} from "apache-arrow";
import { test } from "vitest";
import { LIMIT, split } from "../../../test/fixtures/arrow/upload.ts";
import { collectUpload } from "../../arrow/upload/upload.ts";
import { createQueryResult } from "./query-result.ts";
import { type Row, rowsToTable } from "./rows.ts";

/** Returns rows as a query gives them back from a table with a schema. */
async function stored(rows: readonly Row[], schema: Schema): Promise<Row[]> {
  const bytes = tableToIPC(await rowsToTable(rows, schema), "stream");
  return createQueryResult(async function* () {
    yield bytes;
  }).toArray();
}

test("rows of a result are those that were inserted, with all digits of times and decimals", async () => {
  const times = new List(new Field("item", new TimestampMicrosecond(), true));
  const place = new Struct([
    new Field("price", new Decimal(2, 20), true),
    new Field("at", new DateDay(), true),
  ]);
  const schema = new Schema([
    new Field("id", new Int64(), true),
    new Field("price", new Decimal(2, 20), true),
    new Field("day", new DateDay(), true),
    new Field("second", new TimestampSecond(), true),
    new Field("milli", new TimestampMillisecond("UTC"), true),
    new Field("micro", new TimestampMicrosecond(), true),
    new Field("nano", new TimestampNanosecond(), true),
    new Field("times", times, true),
    new Field("place", place, true),
  ]);
  const day = new Date("2026-05-04");
  const full = {
    id: 9_007_199_254_740_993n,
    price: "123456789012345678.90",
    day,
    second: new Date("1969-12-31T23:59:58Z"),
    milli: new Date("2026-05-04T13:02:01.250Z"),
    micro: 1_777_856_400_123_456_000n,
    nano: 1_777_856_400_123_456_789n,
    times: [-1_000n, null],
    place: { price: "-0.05", at: day },
  };
  const none = Object.fromEntries(Object.keys(full).map((name) => [name, null]));
  assert.deepEqual(await stored([full, none], schema), [full, none]);
});

test("a time that no Date holds is a number of nanoseconds", async () => {
  const late = 2n ** 60n * 1_000_000n;
  const rows = await stored([{ at: late }], new Schema([new Field("at", new TimestampMillisecond(), true)]));
  assert.deepEqual(rows, [{ at: late }]);
});

test("vectors in structs are complete, also if the last ones are null", async () => {
  const item = <T extends DataType>(type: T) => new Field("item", type, true);
  const vector = new Field("v", new FixedSizeList(2, item(new Float32())), true);
  const inner = new Field("s", new Struct([vector]), true);
  const schema = new Schema([new Field("x", new Struct([vector, inner]), true)]);
  const full = { x: { v: [1, 2], s: { v: [3, 4] } } };
  const none = { x: { v: null, s: { v: null } } };
  for (const rows of [[full, none], [none], [full, { x: null }, { x: null }], [none, full]]) {
    const stream = tableToIPC(await rowsToTable(rows, schema), "stream");
    assert.equal((await collectUpload(split(stream, []), LIMIT)).rows, rows.length);
    assert.deepEqual(await stored(rows, schema), rows);
  }
});
