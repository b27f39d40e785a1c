import assert from "node:assert/strict";
import { describe, expect, test } from "vitest";
import { arrowTypeName, type TypeDescription, typeInWords } from "./type-words.ts";

const type = (name: string, more: object = {}) => ({ type: name, fields: [], ...more }) as TypeDescription;
const field = (name: string, inner: TypeDescription) => ({ name, nullable: true, metadata: {}, type: inner });

test.each([
  [type("utf8"), "text"],
  [type("int64"), "64-bit integer"],
  [type("uint8"), "8-bit integer, not negative"],
  [type("float32"), "32-bit number"],
  [type("timestamp", { logicalType: "timestamp:us:UTC" }), "time in microseconds, UTC"],
  [type("timestamp", { logicalType: "timestamp:ms:-" }), "time in milliseconds"],
  [type("decimal128", { length: 10_002n }), "decimal number of 10 digits, 2 after the point"],
  [type("fixed_size_binary", { length: 16n }), "16 bytes"],
  [type("something_new"), "something_new"],
])("%o is %s", (given, words) => expect(typeInWords(given)).toBe(words));

test("a fixed-size list of numbers is a vector with its dimension", () => {
  const vector = type("fixed_size_list", { length: 768n, fields: [field("item", type("float32"))] });
  expect(typeInWords(vector)).toBe("vector of 768 32-bit numbers");
});

test("a list names its items, and a struct its fields", () => {
  expect(typeInWords(type("list", { fields: [field("item", type("utf8"))] }))).toBe("list of texts");
  const struct = type("struct", { fields: [field("a", type("utf8")), field("b", type("bool"))] });
  expect(typeInWords(struct)).toBe("group of a, b");
});

describe("arrow type name", () => {
  const of = (type: string, more: object = {}) => ({ type, fields: [], ...more }) as TypeDescription;
  const field = (name: string, type: TypeDescription) => ({ name, type, nullable: true });

  const CASES: readonly (readonly [TypeDescription, string])[] = [
    [of("int64"), "int64"],
    [of("utf8"), "utf8"],
    [of("timestamp", { logicalType: "timestamp:us:-" }), "timestamp(us)"],
    [of("timestamp", { logicalType: "timestamp:ns:Europe/Berlin" }), "timestamp(ns, Europe/Berlin)"],
    [of("time64", { logicalType: "time64:us" }), "time64(us)"],
    [of("duration", { logicalType: "duration:ms" }), "duration(ms)"],
    [of("decimal128", { length: 20004n }), "decimal128(20, 4)"],
    [of("fixed_size_binary", { length: 16n }), "fixed_size_binary(16)"],
    [
      of("fixed_size_list", { length: 768n, fields: [field("item", of("float32"))] }),
      "fixed_size_list<float32, 768>",
    ],
    [of("list", { fields: [field("item", of("utf8"))] }), "list<utf8>"],
    [of("struct", { fields: [field("a", of("int8")), field("b", of("utf8"))] }), "struct<a: int8, b: utf8>"],
    [of("utf8", { logicalType: "dict:string:int32:false" }), "dictionary<int32, string>"],
    [
      of("map", {
        fields: [
          field("entries", of("struct", { fields: [field("key", of("utf8")), field("value", of("int64"))] })),
        ],
      }),
      "map<utf8, int64>",
    ],
  ];

  for (const [type, name] of CASES)
    test(`names the type ${name}`, () => {
      assert.equal(arrowTypeName(type), name);
    });
});
