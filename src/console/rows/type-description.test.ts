import * as arrow from "apache-arrow";
import { expect, test } from "vitest";
import { jsonSchemaSteps } from "../../arrow/json-schema.ts";
import { decodeSchema } from "../../arrow/schema.ts";
import { arrowTypeName, typeInWords } from "../../client/rows/type-words.ts";
import { atOnce } from "../../runtime/pace.ts";
import { COLUMN_TYPES, namesOf, schemaOf } from "./type-description.ts";

const item = (type: arrow.DataType) => new arrow.Field("item", type, true);
const pair = new arrow.Field<arrow.Struct>(
  "entries",
  new arrow.Struct([
    new arrow.Field("key", new arrow.Utf8()),
    new arrow.Field("value", new arrow.Int8(), true),
  ]),
);
const TYPES: readonly arrow.DataType[] = [
  ...[new arrow.Null(), new arrow.Bool(), new arrow.Utf8(), new arrow.LargeUtf8()],
  ...[new arrow.Binary(), new arrow.LargeBinary(), new arrow.FixedSizeBinary(16)],
  ...[new arrow.Int8(), new arrow.Int64(), new arrow.Uint8(), new arrow.Uint64()],
  ...[new arrow.Float16(), new arrow.Float32(), new arrow.Float64()],
  ...[new arrow.Decimal(2, 10, 128), new arrow.Decimal(10, 60, 256)],
  ...[new arrow.DateDay(), new arrow.DateMillisecond(), new arrow.TimeSecond(), new arrow.TimeNanosecond()],
  ...[new arrow.TimestampMicrosecond("UTC"), new arrow.TimestampSecond(), new arrow.DurationMillisecond()],
  ...[new arrow.List(item(new arrow.Date_(0))), new arrow.FixedSizeList(768, item(new arrow.Float32()))],
  new arrow.Struct([new arrow.Field("a", new arrow.Timestamp(3, "Asia/Tokyo")), item(new arrow.Utf8())]),
  ...[new arrow.Map_(pair), new arrow.Dictionary(new arrow.Utf8(), new arrow.Int32())],
];

/** Bytes before the metadata of the first message of a stream: a mark, and the length of the metadata. */
const HEAD_BYTES = 8;

test("a type of rows has the words and the Arrow name that the schema of a table has for it", () => {
  const schema = new arrow.Schema(TYPES.map((type, at) => new arrow.Field(`c${at}`, type, true)));
  const bytes = arrow.tableToIPC(new arrow.Table(schema), "stream");
  const { fields } = atOnce(jsonSchemaSteps(decodeSchema(bytes.subarray(HEAD_BYTES))));
  for (const [at, type] of TYPES.entries()) {
    const expected = fields[at]?.type;
    if (expected === undefined) throw new Error(`${type} is missing`);
    expect(namesOf(type), String(type)).toEqual({
      words: typeInWords(expected),
      arrowName: arrowTypeName(expected),
    });
  }
});

test("each type of a form is a type of Arrow that may be null", () => {
  const schema = schemaOf(
    arrow,
    COLUMN_TYPES.map((type) => ({ name: type, type, dimension: 3 })),
  );
  expect(schema.fields.map(({ name, nullable, type }) => `${name}: ${type} ${nullable}`)).toEqual([
    "text: Utf8 true",
    "integer: Int64 true",
    "number: Float64 true",
    "true or false: Bool true",
    "time: Timestamp<MICROSECOND, UTC> true",
    "vector: FixedSizeList[3]<Float32> true",
    "bytes: Binary true",
  ]);
});
