import * as arrow from "apache-arrow";
import { ParquetFile } from "parquet-wasm";
import { expect, test } from "vitest";
import { fittingVector } from "../../client/rows/fitting.ts";
import { openParquet } from "../import/parquet.ts";
import { toParquet } from "./parquet-rows.ts";

const list = (item: arrow.DataType) => new arrow.List(new arrow.Field("item", item, true));
const of = (type: arrow.DataType, ...values: readonly unknown[]) =>
  fittingVector(arrow, "column", values, type);

const COLUMNS: Readonly<Record<string, arrow.Vector>> = {
  int8: of(new arrow.Int8(), -1, null),
  uint32: of(new arrow.Uint32(), 4_294_967_295, 0),
  int64: of(new arrow.Int64(), 9_007_199_254_740_993n, null),
  uint64: of(new arrow.Uint64(), 18_446_744_073_709_551_615n, 0n),
  float32: of(new arrow.Float32(), 0.5, null),
  float64: of(new arrow.Float64(), 0.1, -0),
  bool: of(new arrow.Bool(), true, null),
  text: of(new arrow.Utf8(), "ä", ""),
  bytes: of(new arrow.Binary(), new Uint8Array([0, 255]), null),
  date: of(new arrow.DateDay(), new Date(86_400_000), null),
  micros: of(new arrow.TimestampMicrosecond("UTC"), 1_777_899_721_123_456_000n, null),
  nanos: of(new arrow.TimestampNanosecond(), 1_777_899_721_123_456_789n, null),
  decimal: of(new arrow.Decimal(2, 10), "123.45", "-0.05"),
  list: of(list(new arrow.Utf8()), ["a", null], []),
  group: of(
    new arrow.Struct([new arrow.Field("a", list(new arrow.Int32()), true)]),
    { a: [1, 2] },
    { a: null },
  ),
  vector: of(new arrow.FixedSizeList(2, new arrow.Field("item", new arrow.Float32(), true)), [1, 2], [3, 4]),
};

const texts = (table: arrow.Table) => table.toArray().map((row) => JSON.stringify(row, bigIntText));
const bigIntText = (_name: string, value: unknown) => (typeof value === "bigint" ? `${value}n` : value);

test("a Parquet file has the values and the types of the rows, for other readers and the console's own", async () => {
  const rows = new arrow.Table(COLUMNS);
  const file = new Blob([toParquet(rows)]);
  const theirs = await (await ParquetFile.fromFile(file)).read();
  const read = arrow.tableFromIPC(theirs.intoIPCStream());
  const own: Uint8Array[] = [];
  for await (const piece of (await openParquet(file, () => {})).rows()) own.push(piece);
  for (const [name, found] of Object.entries({ theirs: read, own: arrow.tableFromIPC(own) })) {
    const types = ({ schema }: arrow.Table) => schema.fields.map((field) => `${field.name}: ${field.type}`);
    expect(types(found), name).toEqual(types(rows));
    expect(texts(found), name).toEqual(texts(rows));
  }
});

test("a file without rows has the columns", async () => {
  const schema = new arrow.Table(COLUMNS).schema;
  const { schema: found } = await openParquet(new Blob([toParquet(new arrow.Table(schema))]), () => {});
  expect(found.fields.map(({ name }) => name)).toEqual(Object.keys(COLUMNS));
});

test("a column of maps is named as one that Parquet does not get", () => {
  const entries = new arrow.Struct([
    new arrow.Field("key", new arrow.Utf8(), false),
    new arrow.Field("value", new arrow.Int32(), true),
  ]);
  const type = new arrow.Map_(new arrow.Field("entries", entries as never, false));
  const schema = new arrow.Schema([new arrow.Field("facts", type, true)]);
  expect(() => toParquet(new arrow.Table(schema))).toThrow(/column “facts” is Map/);
});
