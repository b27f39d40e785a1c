import * as arrow from "apache-arrow";
import { Compression, Table as ParquetTable, WriterPropertiesBuilder, writeParquet } from "parquet-wasm";
import { expect, test } from "vitest";
import { parquetToArrow } from "./parquet.ts";

/** Writes a table as Parquet, and returns what the conversion of the file gives. */
async function converted(table: arrow.Table, compression: Compression): Promise<arrow.Table> {
  const properties = new WriterPropertiesBuilder().setCompression(compression).setMaxRowGroupSize(2).build();
  const file = writeParquet(ParquetTable.fromIPCStream(arrow.tableToIPC(table, "stream")), properties);
  const pieces: Uint8Array[] = [];
  const progress: number[] = [];
  const blob = new Blob([file as Uint8Array<ArrayBuffer>]);
  for await (const piece of parquetToArrow(blob, (part) => progress.push(part))) pieces.push(piece);
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

test("a type that cannot be converted is named with its column", async () => {
  const column = arrow.vectorFromArray([new Uint32Array([1, 0, 0, 0])], new arrow.Decimal(2, 10));
  await expect(converted(new arrow.Table({ price: column }), Compression.SNAPPY)).rejects.toThrow(
    /“price” is Decimal/,
  );
});

function plain(rows: arrow.Table): unknown {
  return rows
    .toArray()
    .map((row) => Object.entries(row.toJSON()).map(([name, value]) => `${name}=${String(value)}`));
}
