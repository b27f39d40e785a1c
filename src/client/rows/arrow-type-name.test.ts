import assert from "node:assert/strict";
import { test } from "vitest";
import { arrowTypeName } from "./arrow-type-name.ts";
import type { TypeDescription } from "./type-words.ts";

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
