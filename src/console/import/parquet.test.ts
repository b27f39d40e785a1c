import * as arrow from "apache-arrow";
import { Compression, Table as ParquetTable, WriterPropertiesBuilder, writeParquet } from "parquet-wasm";
import { expect, test } from "vitest";
import { decimalText } from "../../arrow/rows/row-texts.ts";
import { batchOf } from "../../client/rows/fitting.ts";
import { openParquet } from "./parquet.ts";

/** Writes a table as Parquet, and returns what the conversion of the file gives. */
async function converted(table: arrow.Table, compression: Compression): Promise<arrow.Table> {
  const properties = new WriterPropertiesBuilder().setCompression(compression).setMaxRowGroupSize(2).build();
  const file = writeParquet(ParquetTable.fromIPCStream(arrow.tableToIPC(table, "stream")), properties);
  const pieces: Uint8Array[] = [];
  const progress: number[] = [];
  const blob = new Blob([file as Uint8Array<ArrayBuffer>]);
  const { rows } = await openParquet(blob, (part) => progress.push(part));
  for await (const piece of rows()) pieces.push(piece);
  if (table.numRows > 0) expect(progress.at(-1)).toBe(1);
  return arrow.tableFromIPC(pieces);
}

const vectors = new arrow.FixedSizeList(2, new arrow.Field("item", new arrow.Float32(), true));
const table = new arrow.Table({
  id: arrow.vectorFromArray([1n, 2n, 3n], new arrow.Int64()),
  name: arrow.vectorFromArray(["a", null, "ü"], new arrow.Utf8()),
  vector: arrow.vectorFromArray(
    [
      [1, 2],
      [3, 4],
      [5, 6],
    ],
    vectors,
  ),
  seen: arrow.vectorFromArray([1_700_000_000_123, null, 0], new arrow.TimestampMicrosecond("UTC")),
  day: arrow.vectorFromArray([new Date(0), new Date(86_400_000), null], new arrow.DateDay()),
  bytes: arrow.vectorFromArray([new Uint8Array([255, 0]), null, new Uint8Array()], new arrow.Binary()),
  tags: arrow.vectorFromArray(
    [["x"], [], null],
    new arrow.List(new arrow.Field("item", new arrow.Utf8(), true)),
  ),
});

test.each([
  ["Snappy", Compression.SNAPPY],
  ["Zstandard", Compression.ZSTD],
  ["gzip", Compression.GZIP],
])("types and values of a Parquet file with %s stay as they are", async (_, compression) => {
  const result = await converted(table, compression);
  expect(result.schema.fields.map(String)).toEqual(table.schema.fields.map(String));
  expect(JSON.stringify(plain(result))).toBe(JSON.stringify(plain(table)));
});

test("a Parquet file without rows keeps its columns", async () => {
  const empty = new arrow.Table(table.schema);
  const result = await converted(empty, Compression.SNAPPY);
  expect(result.numRows).toBe(0);
  expect(result.schema.names).toEqual(table.schema.names);
});

test("decimals keep their digits, in lists and groups, too, as times do", async () => {
  const member = (name: string, type: arrow.DataType) => new arrow.Field(name, type, true);
  const group = new arrow.Struct([
    member("d", new arrow.Decimal(1, 3)),
    member("t", new arrow.TimestampMicrosecond()),
  ]);
  const schema = new arrow.Schema([
    member("small", new arrow.Decimal(2, 9)),
    member("middle", new arrow.Decimal(2, 18)),
    member("large", new arrow.Decimal(10, 38)),
    member("list", new arrow.List(member("item", group))),
  ]);
  const values = [
    ["-12.34", null],
    ["1234567890123456.78", "-0.01"],
    ["-1234567890123456789012345678.0123456789", "0.0000000001"],
    [[{ d: "1.5", t: 1001n * 1000n }, null], []],
  ];
  const result = await converted(new arrow.Table([batchOf(arrow, schema, values)]), Compression.SNAPPY);
  const [small, middle, large] = ["small", "middle", "large"].map((name) => result.getChild(name));
  expect([small?.get(1), decimalText(small?.get(0), 2)]).toEqual([null, "-12.34"]);
  expect([0, 1].map((row) => decimalText(middle?.get(row), 2))).toEqual(values[1]);
  expect([0, 1].map((row) => decimalText(large?.get(row), 10))).toEqual(values[2]);
  const items = result.getChild("list")?.get(0);
  expect(decimalText(items.get(0).d, 1)).toBe("1.5");
  expect(items.getChild("t").data[0].values[0]).toBe(1001n);
  expect(items.get(1)).toBe(null);
});

test("a type that cannot be converted is named with its column", async () => {
  const entries = new arrow.Struct([
    new arrow.Field("key", new arrow.Utf8(), false),
    new arrow.Field("value", new arrow.Utf8(), true),
  ]);
  const type = new arrow.Map_(new arrow.Field("entries", entries, false) as never);
  const schema = new arrow.Schema([new arrow.Field("facts", type, true)]);
  const table = new arrow.Table([batchOf(arrow, schema, [[new Map([["a", "b"]])]])]);
  await expect(converted(table, Compression.SNAPPY)).rejects.toThrow(/“facts” is Map/);
});

function plain(rows: arrow.Table): unknown {
  return rows
    .toArray()
    .map((row) => Object.entries(row.toJSON()).map(([name, value]) => `${name}=${String(value)}`));
}
