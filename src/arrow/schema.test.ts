import assert from "node:assert/strict";
import {
  type DataType,
  DateDay,
  Decimal,
  Dictionary,
  DurationMillisecond,
  DurationSecond,
  Field,
  FixedSizeBinary,
  FixedSizeList,
  Float16,
  Float32,
  Float64,
  Int32,
  Int64,
  LargeUtf8,
  List,
  Schema,
  Struct,
  Table,
  TimeMillisecond,
  TimeNanosecond,
  TimeSecond,
  TimestampMicrosecond,
  TimestampMillisecond,
  TimestampSecond,
  tableToIPC,
  Uint8,
  Utf8,
} from "apache-arrow";
import { test } from "vitest";
import { isLanceError } from "../namespace/errors.ts";
import { atOnce } from "../runtime/pace.ts";
import { jsonSchemaSteps } from "./json-schema.ts";
import { type ArrowSchema, decodeSchema } from "./schema.ts";
import { checkCompatible } from "./upload/compatible.ts";

function schemaOf(fields: readonly Field[], metadata?: Map<string, string>): ArrowSchema {
  const stream = tableToIPC(new Table(new Schema([...fields], metadata)), "stream");
  return decodeSchema(stream.subarray(8, 8 + Buffer.from(stream).readUInt32LE(4)));
}

const one = (name: string, type: DataType, nullable = true) => new Field(name, type, nullable);

test("a schema is told in the vocabulary of the specification", () => {
  const schema = schemaOf(
    [
      new Field("id", new Int64(), false, new Map([["unit", "m"]])),
      one("small", new Uint8()),
      one("half", new Float16()),
      one("text", new LargeUtf8()),
      one("word", new FixedSizeBinary(4)),
      one("price", new Decimal(2, 10, 128)),
      one("day", new DateDay()),
      one("at", new TimestampMicrosecond("UTC")),
      one("took", new DurationMillisecond()),
      one("kind", new Dictionary(new Utf8(), new Int32())),
      one("vector", new FixedSizeList(3, one("item", new Float32()))),
      one("nested", new Struct([one("list", new List(one("item", new Int32())))])),
    ],
    new Map([["owner", "me"]]),
  );
  const json = atOnce(jsonSchemaSteps(schema));
  assert.deepEqual({ ...json.metadata }, { owner: "me" });
  assert.deepEqual(
    json.fields.map(({ name, type }) => [name, type?.type, type?.length]),
    [
      ["id", "int64", undefined],
      ["small", "uint8", undefined],
      ["half", "float16", undefined],
      ["text", "large_utf8", undefined],
      ["word", "fixed_size_binary", 4n],
      ["price", "decimal128", 10_002n],
      ["day", "date32", undefined],
      ["at", "timestamp", undefined],
      ["took", "duration", undefined],
      ["kind", "utf8", undefined],
      ["vector", "fixed_size_list", 3n],
      ["nested", "struct", undefined],
    ],
  );
  assert.deepEqual([json.fields[0]?.nullable, json.fields[1]?.nullable], [false, true]);
  assert.deepEqual({ ...json.fields[0]?.metadata }, { unit: "m" });
  const list = json.fields.at(-1)?.type?.fields[0];
  assert.deepEqual(
    [list?.name, list?.type?.type, list?.type?.fields[0]?.type?.type],
    ["list", "list", "int32"],
  );
});

test("rows fit a table when their columns are of the same kind", () => {
  const vector = (size: number) => new FixedSizeList(size, one("item", new Float32()));
  const table = schemaOf([one("id", new Int64(), false), one("text", new Utf8()), one("vector", vector(2))]);
  const fits = (...fields: Field[]) => checkCompatible(schemaOf(fields), table);
  const fails = (message: RegExp, ...fields: Field[]) =>
    assert.throws(
      () => fits(...fields),
      (error) => isLanceError(error, "TableSchemaValidationError") && message.test(error.message),
    );

  fits(one("text", new LargeUtf8()), one("id", new Int32()));
  fits(one("id", new Int64()), one("vector", new List(one("item", new Float64()))));
  fits(one("id", new Int64()), one("text", new Dictionary(new Utf8(), new Int32())));
  fails(/"id" is float/, one("id", new Float64()));
  fails(/"id" is missing/, one("text", new Utf8()));
  checkCompatible(schemaOf([one("text", new Utf8())]), table, false);
  fails(/"more" is not in the table/, one("id", new Int64()), one("more", new Utf8()));
  fails(/fixed_size_list\(3\)/, one("id", new Int64()), one("vector", vector(3)));
});

test("times do not fit a column of a coarser unit, which would cut them", () => {
  const table = schemaOf([
    one("at", new TimestampMillisecond()),
    one("of", new TimeMillisecond()),
    one("spans", new List(one("item", new DurationSecond()))),
  ]);
  const fits = (...fields: Field[]) => checkCompatible(schemaOf(fields), table);
  fits(one("at", new TimestampSecond()), one("of", new TimeSecond()));
  fits(one("at", new TimestampMillisecond()), one("spans", new List(one("item", new DurationSecond()))));
  for (const finer of [
    one("at", new TimestampMicrosecond()),
    one("of", new TimeNanosecond()),
    one("spans", new List(one("item", new DurationMillisecond()))),
  ])
    assert.throws(
      () => fits(finer),
      (error) => isLanceError(error, "TableSchemaValidationError") && /coarser/.test(error.message),
    );
});

/** The metadata of a schema message whose schema has the given vtable: its size, its table's size, its fields. */
function schemaMessage(vtable: readonly number[]): Buffer {
  const bytes = Buffer.alloc(64);
  bytes.writeUInt32LE(16, 0);
  for (const [i, value] of [10, 16, 0, 0, 4].entries()) bytes.writeUInt16LE(value, 4 + i * 2);
  bytes.writeInt32LE(12, 16);
  // The header is the table of the schema; its vtable follows, and an empty list of fields.
  bytes.writeUInt32LE(12, 20);
  for (const [i, value] of vtable.entries()) bytes.writeUInt16LE(value, 40 + i * 2);
  bytes.writeInt32LE(-8, 32);
  bytes.writeUInt32LE(16, 36);
  return bytes;
}

test("a schema with an empty list of fields is read, and a schema without a list is refused", () => {
  assert.deepEqual(decodeSchema(schemaMessage([8, 8, 0, 4])).fields, []);
  assert.throws(
    () => decodeSchema(schemaMessage([6, 8, 0])),
    (error) => isLanceError(error, "InvalidInput") && /has no list of fields/.test(error.message),
  );
});
