import assert from "node:assert/strict";
import {
  Binary,
  type DataType,
  DateMillisecond,
  Dictionary,
  Field,
  FixedSizeBinary,
  FixedSizeList,
  Float32,
  Int8,
  Int32,
  List,
  Null,
  Schema,
  Struct,
  Table,
  Timestamp,
  TimeUnit,
  tableToIPC,
  Utf8,
} from "apache-arrow";
import { test } from "vitest";
import { isLanceError } from "../../../../namespace/errors.ts";
import { openClient, temporaryDirectory } from "../../test-support.ts";

const field = (name: string, type: DataType) => new Field(name, type, true);
const vector = (size: number, type: DataType) => new FixedSizeList(size, field("item", type));
const vectors = (depth: number): DataType => (depth === 0 ? new Float32() : vector(1, vectors(depth - 1)));
const dictionary = (type: DataType) => new Dictionary(type, new Int8(), 1);
const time = (timezone: string) => new Timestamp(TimeUnit.MICROSECOND, timezone);
const twice = (name: string) => new Struct([field("x", new Int32()), field(name, new Int32())]);
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
    [vectors(33), /"item" is the innermost of more than 32 lists of fixed size/],
    [dictionary(new DateMillisecond()), /dictionary of date/],
    [dictionary(new List(field("item", new Int32()))), /dictionary of list/],
    [time("-"), /timezone "-"/],
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
    ...[vectors(32), time("UTC"), time("+0530"), time("Asia/Kolkata"), new Timestamp(TimeUnit.SECOND)],
  ];
  for (const [i, type] of taken.entries()) {
    await upload("createTable", `t${i}`, {}, body(type));
    await call("queryTable", `t${i}`, { k: 1n });
  }
});
