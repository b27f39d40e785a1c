import assert from "node:assert/strict";
import {
  Bool,
  type DataType,
  Dictionary,
  Field,
  FixedSizeList,
  Float32,
  Int32,
  LargeUtf8,
  List,
  Null,
  Schema,
  Struct,
  Table,
  tableFromIPC,
  tableToIPC,
  Uint64,
  Utf8,
  vectorFromArray,
} from "apache-arrow";
import { test } from "vitest";
import { messagesIn } from "../../test/fixtures/arrow/upload.ts";
import { dropColumn, dropField, integersOf, replaceFloats, rowsAmong, selectRows } from "./edit.ts";
import { END_OF_STREAM } from "./ipc/stream.ts";
import { decodeSchema } from "./schema.ts";

const ROWS = 21;
const numbers = Array.from({ length: ROWS }, (_, row) => row);
const some = <T>(value: (row: number) => T) => numbers.map((row) => (row % 3 === 1 ? null : value(row)));
const struct = new Struct([new Field("x", new Int32(), true), new Field("y", new Utf8(), true)]);

const COLUMNS: Readonly<Record<string, readonly [type: DataType, values: readonly unknown[]]>> = {
  int: [new Int32(), numbers],
  maybe: [new Int32(), some((row) => row)],
  bool: [new Bool(), some((row) => row % 2 === 0)],
  even: [new Bool(), numbers.map((row) => row % 2 === 0)],
  text: [new Utf8(), some((row) => "é".repeat(row))],
  large: [new LargeUtf8(), numbers.map(String)],
  nothing: [new Null(), numbers.map(() => null)],
  list: [
    new List(new Field("item", new Utf8(), true)),
    some((row) => Array.from({ length: row % 4 }, String)),
  ],
  vector: [new FixedSizeList(2, new Field("item", new Float32(), true)), numbers.map((row) => [row, -row])],
  struct: [struct, some((row) => ({ x: row, y: String(row) }))],
  dictionary: [new Dictionary(new Utf8(), new Int32()), numbers.map((row) => `word ${row % 4}`)],
  _rowid: [new Uint64(), numbers.map(BigInt)],
  last: [new Utf8(), some(String)],
};

const messagesOf = (table: Table) => messagesIn(tableToIPC(table, "stream"));

function source() {
  const entries = Object.entries(COLUMNS);
  const schema = new Schema(entries.map(([name, [type]]) => new Field(name, type, true)));
  const vectors = entries.map(([name, [type, values]]) => [name, vectorFromArray([...values], type)]);
  const table = new Table(schema, Object.fromEntries(vectors));
  const { schema: head, schemaMetadata, data } = messagesOf(table);
  return { table, head, fields: decodeSchema(schemaMetadata).fields, data, batch: data.at(-1) as Uint8Array };
}

function read(...messages: readonly Uint8Array[]) {
  return tableFromIPC(Buffer.concat([...messages, END_OF_STREAM]));
}

const numeric = (_: string, value: unknown) => (typeof value === "bigint" ? Number(value) : value);
const plain = (table: Table) => JSON.stringify(table.toArray(), numeric);

test("rows are skipped in columns of every layout", () => {
  const { table, head, fields, data, batch } = source();
  for (const from of [1, 7, 8, 9, ROWS - 1]) {
    const rest = read(head, ...data.slice(0, -1), selectRows(batch, fields, [{ from, count: ROWS - from }]));
    assert.equal(plain(rest), plain(table.slice(from)), `without the first ${from}`);
    assert.equal(rest.getChild("maybe")?.nullCount, table.slice(from).getChild("maybe")?.nullCount);
  }
});

test("rows from several places are selected in columns of every layout", () => {
  const { table, head, fields, data, batch } = source();
  const index = Object.keys(COLUMNS).indexOf("_rowid");
  const ids = integersOf(batch, fields, index);
  assert.deepEqual(ids, [...(table.getChild("_rowid") ?? [])]);
  const among = new Set([0, 2, 3, 4, ROWS - 1].map((row) => ids[row] as bigint));
  assert.deepEqual(rowsAmong(batch, fields, index, among), [
    { from: 0, count: 1 },
    { from: 2, count: 3 },
    { from: ROWS - 1, count: 1 },
  ]);
  const everything = { from: 0, count: ROWS };
  for (const ranges of [
    rowsAmong(batch, fields, index, among),
    [
      { from: 3, count: 6 },
      { from: 17, count: 4 },
    ],
    [everything],
  ]) {
    const selected = read(head, ...data.slice(0, -1), selectRows(batch, fields, ranges));
    const wanted = ranges.flatMap(({ from, count }) => table.slice(from, from + count).toArray());
    assert.equal(plain(selected), JSON.stringify(wanted, numeric));
    assert.equal(selected.numRows, wanted.length);
  }
});

test("a column is dropped wherever it is", () => {
  const { table, head, fields, data, batch } = source();
  for (const name of ["int", "maybe", "_rowid"]) {
    const index = fields.findIndex((field) => field.name === name);
    const kept = Object.keys(COLUMNS).filter((other) => other !== name);
    const rest = read(dropField(head, index), ...data.slice(0, -1), dropColumn(batch, fields, index));
    assert.deepEqual(
      rest.schema.fields.map((field) => field.name),
      kept,
    );
    assert.equal(plain(rest), plain(table.select(kept)));
  }
});

test("floats are replaced, and the message that they were in is left alone", () => {
  const schema = new Schema([new Field("a", new Utf8(), true), new Field("score", new Float32(), true)]);
  const table = new Table(schema, {
    a: vectorFromArray(["x", null, "z"], new Utf8()),
    score: vectorFromArray([1, 2, 3], new Float32()),
  });
  const { schema: head, schemaMetadata, data } = messagesOf(table);
  const [batch] = data as [Uint8Array];
  const changed = replaceFloats(batch, decodeSchema(schemaMetadata).fields, 1, (row) => row / 2);
  assert.deepEqual([...(read(head, changed).getChild("score") ?? [])], [0, 0.5, 1]);
  assert.deepEqual([...(read(head, changed).getChild("a") ?? [])], ["x", null, "z"]);
  assert.deepEqual([...(read(head, batch).getChild("score") ?? [])], [1, 2, 3]);
});
