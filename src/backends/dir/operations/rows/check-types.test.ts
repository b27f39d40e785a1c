import assert from "node:assert/strict";
import { fromJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import {
  Binary,
  type DataType,
  DateMillisecond,
  Decimal,
  DenseUnion,
  Dictionary,
  Field,
  FixedSizeBinary,
  FixedSizeList,
  Float32,
  Int8,
  Int32,
  IntervalDayTime,
  IntervalYearMonth,
  List,
  Map_,
  Null,
  Schema,
  SparseUnion,
  Struct,
  Table,
  Timestamp,
  TimeUnit,
  tableToIPC,
  Utf8,
} from "apache-arrow";
import { test } from "vitest";
import { openClient, temporaryDirectory } from "../../../../../test/fixtures/dir/directory-backend.ts";
import { isLanceError } from "../../../../namespace/errors.ts";

const field = (name: string, type: DataType) => new Field(name, type, true);
const vector = (size: number, type: DataType) => new FixedSizeList(size, field("item", type));
const vectors = (depth: number): DataType => (depth === 0 ? new Float32() : vector(1, vectors(depth - 1)));
const dictionary = (type: DataType) => new Dictionary(type, new Int8(), 1);
const time = (timezone: string) => new Timestamp(TimeUnit.MICROSECOND, timezone);
const twice = (name: string) => new Struct([field("x", new Int32()), field(name, new Int32())]);
const sortedMap = new Map_(
  new Field("entries", new Struct([field("key", new Utf8()), field("value", new Int32())]), false) as never,
  true,
);
const refusal = (message: RegExp) => (error: unknown) =>
  isLanceError(error, "InvalidInput") && message.test(error.message);
const body = (type: DataType) => tableToIPC(new Table(new Schema([field("c", type)])), "stream");

test("refuses columns that the engine could not read again, or on which it fails", async (t) => {
  const { upload } = await openClient(t, await temporaryDirectory(t));
  const refused: readonly (readonly [DataType, RegExp])[] = [
    [twice("x"), /"c" has two fields of the same name/],
    [new List(field("item", twice("x"))), /"item" has two fields/],
    [vector(2, new Null()), /"c" is a fixed_size_list of null/],
    [vector(2, vector(2, new Null())), /"item" is a fixed_size_list of null/],
    [vector(2, new FixedSizeBinary(0)), /fixed_size_list of fixed_size_binary/],
    [vector(2, twice("y")), /fixed_size_list of struct/],
    [vector(1, new Utf8()), /fixed_size_list of utf8/],
    [vector(1, new Binary()), /fixed_size_list of binary/],
    [vector(1, dictionary(new Utf8())), /fixed_size_list of dictionary/],
    [vector(1, new List(field("item", new Int32()))), /"c" is a fixed_size_list of list, which/],
    [vector(0, new Int32()), /"c" is a fixed_size_list of size 0, which the engine cannot store/],
    [sortedMap, /"c" is a map with sorted keys, which the engine cannot store/],
    [vectors(33), /"item" is the innermost of more than 32 lists of fixed size/],
    [dictionary(new DateMillisecond()), /dictionary of date/],
    [dictionary(new List(field("item", new Int32()))), /dictionary of list/],
    [time("-"), /timezone "-"/],
    [time("U\0"), /timezone "U\\u0000"/],
    ...[0, 39, 76].map((precision): readonly [DataType, RegExp] => [
      new Decimal(0, precision, 128),
      new RegExp(`"c" is a decimal of 128 bits with precision ${precision}, which must be between 1 and 38`),
    ]),
    [new Decimal(0, 0, 256), /"c" is a decimal of 256 bits with precision 0/],
    [new Decimal(6, 5, 128), /"c" is a decimal with scale 6, which must not be above its precision 5/],
    [new List(field("item", new Decimal(6, 5, 256))), /"item" is a decimal with scale 6/],
    [new Decimal(0, 9, 32), /"c" is a decimal of 32 bits, which the engine cannot store/],
    [new Decimal(0, 18, 64), /"c" is a decimal of 64 bits, which the engine cannot store/],
    [new IntervalDayTime(), /"c" is an interval of 64 bits, which the engine cannot store/],
    [new Struct([field("x", new IntervalYearMonth())]), /"x" is an interval of 32 bits/],
    [new SparseUnion([0], [field("a", new Int32())]), /"c" is a union, a type that Lance cannot store/],
    [new List(field("item", new DenseUnion([5], [field("a", new Int32())]))), /"item" is a union/],
    [new Struct([field("a\0", new Int32())]), /"a\\u0000" has a null character in its name/],
    [
      new List(field("item", time("+05:30"))),
      /timezone "\+05:30", which the engine cannot store; use a name/,
    ],
  ];
  for (const [type, message] of refused)
    await assert.rejects(upload("createTable", "t", {}, body(type)), refusal(message));
  await upload("createTable", "t", {}, body(new Int32()));
  for (const call of ["insertIntoTable", "mergeInsertIntoTable"] as const)
    await assert.rejects(
      upload(call, "t", { on: ["c"], whenNotMatchedInsertAll: true }, body(time("-"))),
      refusal(/timezone "-"/),
    );
});

test("takes columns of similar types, which the engine can read", async (t) => {
  const { upload, call } = await openClient(t, await temporaryDirectory(t));
  const taken = [
    ...[
      twice("X"),
      vector(1, twice("y")),
      vector(2, vector(2, new Float32())),
      new List(field("item", new Null())),
    ],
    ...[vector(2, new FixedSizeBinary(1)), dictionary(new Binary()), dictionary(new Int32())],
    ...[new Decimal(0, 1, 128), new Decimal(38, 38, 128), new Decimal(-2, 5, 128), new Decimal(76, 76, 256)],
    ...[vectors(32), time("UTC"), time("+0530"), time("Asia/Kolkata"), new Timestamp(TimeUnit.SECOND)],
  ];
  for (const [i, type] of taken.entries()) {
    await upload("createTable", `t${i}`, {}, body(type));
    await call("queryTable", `t${i}`, { k: 1n });
  }
});

test("refuses new columns of such types, given as an expression or as a type", async (t) => {
  const { upload, call } = await openClient(t, await temporaryDirectory(t));
  await upload("createTable", "t", {}, body(new Int32()));
  for (const [expression, message] of [
    ["arrow_cast(c, 'Timestamp(Microsecond, Some(\"+05:30\"))')", /"x" has the timezone "\+05:30"/],
    ["arrow_cast(c, 'Decimal32(9, 2)')", /"x" is a decimal of 32 bits, which the engine cannot store/],
  ] as const)
    await assert.rejects(
      call("alterTableAddColumns", "t", { newColumns: [{ name: "x", expression }] }),
      refusal(message),
    );
  for (const [type, length, message] of [
    ["decimal128", 0, /decimal128 is a decimal of 128 bits with precision 0/],
    ["decimal128", 39_000, /with precision 39, which must be between 1 and 38/],
    ["decimal256", 77_000, /with precision 77, which must be between 1 and 76/],
    ["decimal128", 5_006, /with scale 6, which must not be above its precision 5/],
    ["timestamp:us:+05:30", undefined, /has the timezone "\+05:30"/],
  ] as const) {
    const dataType = fromJson(ValueSchema, length === undefined ? type : { type, length });
    await assert.rejects(
      call("alterTableAlterColumns", "t", { alterations: [{ path: "c", dataType }] }),
      refusal(message),
    );
  }
  await call("alterTableAddColumns", "t", {
    newColumns: [{ name: "y", expression: "cast(c as decimal(38, 10))" }],
  });
  await call("queryTable", "t", { k: 1n });
});
